"""The terminal program: a client of the control API and of nothing else."""
