"""Keeps training data apart from evaluation questions: sealed and held-out questions are never trained on.

`rules.py` defines a copy, by the source of a text; `index.py` finds copies. Nothing here draws tasks.
"""
