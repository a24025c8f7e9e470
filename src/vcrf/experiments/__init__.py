"""The paper's experiments: folds, grids, noise, stored results, tables and a report. See docs/reproduce.md."""
