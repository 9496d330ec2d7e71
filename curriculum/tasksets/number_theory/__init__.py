"""Tasksets of number theory, one file each: divisibility, congruences, equations in whole numbers."""
