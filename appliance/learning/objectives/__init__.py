"""Training objectives: a module and a table row for each loss. Imports no torch."""
