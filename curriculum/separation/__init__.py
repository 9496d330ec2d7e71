"""Keeps training data apart from evaluation questions, which are sealed or held out.

`rules.py` defines a copy, by the source of a text; `index.py` finds copies. Nothing here draws tasks.
"""
