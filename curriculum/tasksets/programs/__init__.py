"""Tasksets about programs, one file each: writing, repairing, completing, translating and tracing.

`chains.py` (steps on lists and texts) and `tested_blocks.py` (loops and choices) make the programs with their tests.
"""
