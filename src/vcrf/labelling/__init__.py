"""What is done with a fitted tagger: labelling whole files, and saying why."""
