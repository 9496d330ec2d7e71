"""Promotion gates: one module and one row in `registry.py` per gate.

A gate is a pure function of evidence, its policy section and the current time; no gate reads a clock, store or file.
Start with `gate.py` (the interface), then any short gate such as `cost.py`.
"""
