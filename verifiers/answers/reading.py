"""What every verifier of mathematics says about a submission: how it is read, when it counts as worked out."""

from __future__ import annotations

from fractions import Fraction

from verifiers.answers.grammar.nodes import Expression, Negation, Number, Power, Product, Quotient
from verifiers.answers.grammar.rational import rational

MAX_WORKED_OUT_BITS = 6_000
"""Rational values larger than this (1,800 digits) need not be written out."""
MAX_SHOWN = 200


def is_written_number(node: Expression) -> bool:
    """A number as people write a result: digits, a decimal, a fraction of such, a power of one, digits times a power.

    `17`, `-3/4`, `0.25`, `10^{30}`, `2 * 10^-20`. Not `17 + 25`, `sqrt(9)` or `gcd(12, 18)`: those leave the work to
    whoever checks.
    """
    inside = node.of if isinstance(node, Negation) else node
    match inside:
        case Quotient(above, below):
            return _is_factor(_unsigned(above)) and _is_factor(_unsigned(below))
        case Product((Number(), Power() as power)):
            return _is_factor(power)
        case _:
            return _is_factor(inside)


def _unsigned(node: Expression) -> Expression:
    return node.of if isinstance(node, Negation) else node


def _is_factor(node: Expression) -> bool:
    match node:
        case Number():
            return True
        case Power(base, exponent):
            return isinstance(base, Number) and isinstance(_unsigned(exponent), Number)
        case _:
            return False


def leaves_work(node: Expression) -> bool:
    """Whether a constant is a rational number of ordinary size that was not written as one."""
    if is_written_number(node):
        return False
    value = rational(node)
    if value is None:
        return False
    return max(value.numerator.bit_length(), value.denominator.bit_length()) <= MAX_WORKED_OUT_BITS


def shown(value: Fraction) -> str:
    """A rational number as short text: large ones by their size, because printing them is slow."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > 640:
        return f"a number of about {value.numerator.bit_length()} / {value.denominator.bit_length()} bits"
    return str(value)


def clipped(text: str) -> str:
    """The beginning of a hostile text, with everything but printable ASCII escaped."""
    return ascii(text[:MAX_SHOWN])[1:-1] + ("..." if len(text) > MAX_SHOWN else "")
