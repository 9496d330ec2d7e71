"""Text of Lean files, read without Lean.

`lexer.py` splits it into words, `commands.py` into commands, `context.py` finds what a submission needs from a
statement, `screening.py` looks for forbidden words. All pure; no pass rests on any of it.
"""
