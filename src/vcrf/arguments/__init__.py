"""What users pass, checked: sentences and labels, labels left open, how a solver is to run."""
