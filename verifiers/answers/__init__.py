"""This package reads what a text says, and decides whether it is equal to what was expected."""
