"""Tasksets whose tasks are not a line on a calculator, one file each."""
