"""Decides whether every term of a sum or a product has a value: a closed form skips undefined terms.

Uses an allow-list: a term not known to be defined at every whole number from the first one on counts as undefined.
Symbols other than the index are assumed to be in general position, where nothing happens to be zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.nodes import symbols

EVERYWHERE = frozenset({"sqrt", "cbrt", "abs", "exp", "sin", "cos", "sinh", "cosh", "tanh", "atan", "floor", "ceil"})
"""Functions that have a value wherever their argument has one."""


@dataclass(frozen=True)
class IndexedTerms:
    """Terms of a sum or product whose index runs from `low` to `high`, or without end if `high` is None."""

    index: str
    low: int
    high: int | None

    def are_defined(self, node: n.Expression) -> bool:
        match node:
            case n.Quotient(above, below):
                return self.are_defined(above) and self.are_nonzero(below)
            case n.Power(base, exponent):
                whole = isinstance(exponent, n.Number) and exponent.value > 0 and exponent.value.denominator == 1
                return all(map(self.are_defined, (base, exponent))) and (whole or self.are_nonzero(base))
            case n.FunctionCall("ln", (of,)):
                return self.are_nonzero(of)
            case n.FunctionCall("factorial" | "binomial", arguments):
                return all(map(self._are_natural, arguments))
            case n.FunctionCall(name) if name not in EVERYWHERE:
                return False
            case _:
                return all(map(self.are_defined, n.children(node)))

    def are_nonzero(self, node: n.Expression) -> bool:
        """True if each term of a sum or product has a value and none is zero."""
        match node:
            case n.Number(value):
                return value != 0
            case n.Constant() | n.FunctionCall("exp", _):
                return self.are_defined(node)
            case n.Negation(of) | n.FunctionCall("sqrt" | "cbrt" | "abs", (of,)):
                return self.are_nonzero(of)
            case n.Product() | n.Quotient():
                return all(map(self.are_nonzero, n.children(node)))
            case n.Power(base, exponent):
                return self.are_nonzero(base) and self.are_defined(exponent)
            case n.FunctionCall("factorial", (of,)):
                return self._are_natural(of)
            case n.Symbol() | n.Sum():
                return self._have_no_root(node)
            case _:
                return False

    def _are_natural(self, node: n.Expression) -> bool:
        """True if an expression is certainly natural at every index: a polynomial with non-negative integer
        coefficients in steps from the first index, `2k + 1`. Also true for other symbols without the index."""
        import sympy

        from verifiers.answers.algebra.symbolic import build

        if symbols(node) - {self.index}:
            return self.index not in symbols(node)
        step = sympy.Dummy()
        built = build(node, "real").subs(sympy.Symbol(self.index, real=True), step + self.low)
        return built.is_polynomial(step) and all(
            factor.is_Integer and factor >= 0 for factor in sympy.Poly(built, step).all_coeffs()
        )

    def _have_no_root(self, node: n.Expression) -> bool:
        """True if no factor that contains only the index has an integer root in the range."""
        import sympy

        from verifiers.answers.algebra.symbolic import build

        built, index = build(node, "real"), sympy.Symbol(self.index, real=True)
        if not built.is_polynomial(*built.free_symbols) or built.is_zero:
            return False
        roots = [
            root
            for factor, _ in sympy.factor_list(built)[1]
            if factor.free_symbols == {index}
            for root in sympy.Poly(factor, index).ground_roots()
        ]
        return not any(
            root.is_Integer and root >= self.low and (self.high is None or root <= self.high) for root in roots
        )
