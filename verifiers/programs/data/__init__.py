"""Plain data for and from programs: `values.py` parses and renders it, `compare.py` compares it, `generators.py` draws
and shrinks inputs, `mutants.py` changes programs. All pure; nothing is evaluated."""
