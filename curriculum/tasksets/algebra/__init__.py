"""Tasksets of algebra, one file each."""
