"""SMT-LIB as a language of our own, with limits at every step; no solver is imported here.

`reader.py` parses S-expressions, `elaborate.py` and `operators.py` make sorted terms (`terms.py`), `script.py` reads
commands, `evaluate.py` computes values exactly, `render.py` writes text.
"""
