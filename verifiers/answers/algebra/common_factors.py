"""Decides whether numerator and denominator of a fraction of polynomials share a cancellable factor.

Polynomials of several symbols with exact coefficients are decided, up to a bound on their degree; all others count as
irreducible, because reducibility was not shown.
"""

from __future__ import annotations

from verifiers.answers.algebra.denominators import MAX_DEGREE, MAX_UNKNOWNS, degree_bound
from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.nodes import symbols


def share_a_factor(above: n.Expression, below: n.Expression) -> bool:
    """True if both expressions are polynomials with a common factor that contains a symbol. False if that is not
    proven."""
    if not symbols(above) or not symbols(below):
        return False
    if len(symbols(above) | symbols(below)) > MAX_UNKNOWNS or max(map(degree_bound, (above, below))) > MAX_DEGREE:
        return False
    import sympy

    from verifiers.answers.algebra.symbolic import build, gives

    def shared() -> bool:
        parts = [build(above), build(below)]
        names = sorted(set().union(*(part.free_symbols for part in parts)), key=str)
        if not all(part.is_polynomial(*names) for part in parts):
            return False
        return bool(sympy.gcd(*(sympy.Poly(part, *names) for part in parts)).total_degree() > 0)

    return gives(True, shared)
