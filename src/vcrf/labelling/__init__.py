"""Labelling with a model: sentences, whole files, and why a label was chosen."""
