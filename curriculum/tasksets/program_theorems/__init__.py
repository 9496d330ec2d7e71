"""Lean theorems on generated functional programs, whose proofs need induction and auxiliary lemmas.

`programs.py` draws data types and functions with the lemmas that hold for them, `theory.py` proves those lemmas and
writes Lean, `terms.py` rewrites terms. `claims.py` makes equations that follow from the lemmas, and false ones with a
counterexample; `taskset.py` asks for their proofs.
"""
