"""Tasksets of number theory, one file each: divisibility and congruences."""
