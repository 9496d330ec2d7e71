"""Turns a repository with tests into terminal tasks: faults to repair, and functions to write.

Invariants: nothing of a repository runs on the host; its setup code never runs at all. Open `making.py` first. Stored
tasks are ordinary rows of an owner's taskset: nothing in here is needed to work on them or to judge them.
"""
