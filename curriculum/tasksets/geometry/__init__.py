"""Tasksets of geometry, one file each."""
