"""Recognises vectors and matrices by their notation: an arrow, bold letters.

The algebra of answers is that of numbers, which holds for one vector, for multiples and sums, and for a dot product of
two; every other product of vectors is refused.
"""

from __future__ import annotations

import math
import re

from verifiers.answers.grammar.nodes import Expression, FunctionCall, Negation, Number, Power, Sum, Symbol, children

VECTORS = re.compile("(vec|bold|unit|hat) ")
"""Name prefix of a decorated symbol that may be a vector or a matrix."""


def is_vector(node: Expression) -> bool:
    """True if an expression contains a vector outside function arguments."""
    match node:
        case Symbol(name):
            return bool(VECTORS.match(name))
        case FunctionCall():
            return False
        case _:
            return any(map(is_vector, children(node)))


def vectors(node: Expression) -> int:
    """Counts the vectors or matrices multiplied in an expression; a letter with a hat may be an estimate and does not
    count."""
    match node:
        case Symbol(name):
            return int(is_vector(node) and not name.startswith("hat "))
        case FunctionCall():
            return 0
        case Sum(terms):
            return max(map(vectors, terms))
        case Power(base, exponent):
            of = exponent.of if isinstance(exponent, Negation) else exponent
            return vectors(base) * (math.ceil(of.value) if isinstance(of, Number) else 2)
        case _:
            return sum(map(vectors, children(node)))
