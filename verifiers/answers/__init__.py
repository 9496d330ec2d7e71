"""Kind `answer`: parses a mathematical or textual answer and decides whether it equals the expected one.

`grammar/` turns text into trees and values, `algebra/` does exact computation, and the modules here compare values:
`judging.py` decides, `coerce.py` aligns kinds, `compare*.py`, `piecewise.py` and `residue_classes.py` compare,
`forms.py` checks the required form. Open `judging.py` first.

Equality is proved, never sampled or rounded: a close decimal passes only within a tolerance of the spec. Submissions
are never executed.
"""
