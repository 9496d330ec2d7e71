"""Tasksets of combinatorics, one file each."""
