"""Answers: what a text says, and whether it is equal to what was expected."""
