"""Plain data for and from programs. All pure; nothing is evaluated.

`values.py` parses and renders data, `compare.py` compares it, `generators.py` draws and shrinks inputs, `mutants.py`
changes programs.
"""
