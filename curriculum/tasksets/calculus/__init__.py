"""Tasksets of calculus, one file each."""
