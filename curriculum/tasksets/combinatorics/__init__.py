"""Tasksets of combinatorics, one file each: counting, probabilities and expected values."""
