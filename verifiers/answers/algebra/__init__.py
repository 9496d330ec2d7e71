"""Exact algebra on expression trees: equality, signs, sets of real numbers, roots, calculus.

Every result is proved or left undecided; enclosures only prove differences and signs, never equality. SymPy is imported
only inside functions, and only built trees reach it, never text. Open `scalars.py` first: it combines the other
modules.
"""
