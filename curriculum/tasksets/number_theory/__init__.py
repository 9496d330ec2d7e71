"""Tasksets of number theory, one file each."""
