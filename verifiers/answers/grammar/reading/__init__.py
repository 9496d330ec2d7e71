"""Constructs of answers: one module per kind of notation, combined in `language.py`.

A construct is a function that reads on from the current token of a `Reader`. Constructs compute nothing and do not
decide equality. Entry points: `read_answer.py` for answers, `plain.py` for specs and predicates. A new construct is one
function here and one row in `language.py`.
"""
