"""Checks the form of an answer; returns the reason for a refusal, empty if the form is right.

`worked_out`: nothing is left to compute that the expected answer has computed. If that is a written number, so must the
answer be (a complex one may be over one denominator), or a closed form within a tolerance; a constant may use no
function that the expected one does not use, apart from roots and powers; an inequality must be solved if the expected
one is; an integral, a sum or a limit only restates a question.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

from verifiers.answers.algebra import normal
from verifiers.answers.algebra.common_factors import share_a_factor
from verifiers.answers.algebra.monomials import NoNormalFormError, primes
from verifiers.answers.algebra.rewriting import BINDERS, KNOWN
from verifiers.answers.compare_sets import is_set
from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import symbols, walk
from verifiers.answers.grammar.rational import integer_root, rational
from verifiers.answers.grammar.traverse import comparisons, expressions, values
from verifiers.answers.grammar.values import BaseNumber, Quantity, RelationValue, Scalar, SetOperation, Value

Form = Literal["equal", "worked_out", "simplified", "same"]
MAX_WORKED_OUT_BITS = 6_000
"""Size in bits (1,800 digits) above which rational values need not be written out."""
IMAGINARY, PI = n.Constant("i"), n.Constant("pi")
ROOTS = frozenset({"sqrt", "cbrt", "root"})
RADIANS = tuple(((name, 1),) for name in ("rad", "radian", "radians"))
FREE_FUNCTIONS = frozenset({"sqrt", "cbrt", "root", "exp"})
SAME_FUNCTION = {"log": "ln"}
COUNTS = frozenset({"binomial", "factorial"})
"""Functions that count as equally worked out."""
CLOSED = FREE_FUNCTIONS | (
    frozenset({"ln", "log", "sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "acot", "asec", "acsc"})
    | {"sinh", "cosh", "tanh", "coth", "sech", "csch", "asinh", "acosh", "atanh", "percent", "abs"}
)
"""Functions of a closed form that may replace a decimal within a tolerance."""
ONLY_SPELLING = FREE_FUNCTIONS | {"percent", "abs"}


def refusal(answer: Value, expected: Value, form: Form, *, sums: bool = True, near: bool = False) -> str:
    """Returns the reason why an answer is not in the form that a spec requires; empty if it is. With `sums`, constants
    must be multiplied out and added up if the expected answer is. With `near`, an approximate value is expected."""
    if form == "equal":
        return ""
    reason = unfinished(answer, expected, sums=sums, near=near)
    if reason or form == "worked_out":
        return reason
    if form == "same":
        return "" if alike(answer, expected) else "not in the required notation"
    return next((reason for node in expressions(answer) if (reason := unsimplified(node))), "")


def unfinished(answer: Value, expected: Value, *, sums: bool = True, near: bool = False) -> str:
    """Returns the reason why an answer leaves work to be done, such as an unsolved equation, or an empty text."""
    left = functions(answer) & BINDERS
    if left and (left := left - functions(expected)):
        return f"not worked out: the {', '.join(sorted(left))} is left to be computed"
    if _bases(answer) != _bases(expected):
        return "not worked out: it is not in the base of the expected answer"
    if _intersects(answer) and not _intersects(expected):
        return "not worked out: an intersection is left to be computed"
    if not is_solved(answer) and is_solved(expected):
        return "not worked out: it is left to be solved"
    if not is_solved(expected):
        return ""
    wanted = [node for node in expressions(expected) if not symbols(node)]
    if not wanted:
        return ""
    constants = [node for node in expressions(answer) if not symbols(node)]
    if isinstance(answer, Scalar) and isinstance(expected, Scalar) and not constants:
        return "not worked out: the answer is a constant, and symbols are left in it"
    if all(map(is_written, wanted)):
        # An angle may be in degrees or a multiple of pi.
        turned = isinstance(expected, Quantity) != isinstance(answer, Quantity) or (
            isinstance(answer, Quantity) and answer.unit in RADIANS
        )
        if all(is_written(node) or is_over_one_denominator(node) for node in constants) or (
            turned and all(map(_is_multiple_of_pi, constants))
        ):
            return ""
        if near and all(is_written(node) or _is_closed(node) for node in constants):
            return ""
        return "not worked out: the answer is a number, write the number"
    asked = functions(*wanted)
    extra = functions(*constants) - asked - ONLY_SPELLING - (COUNTS if asked & COUNTS else frozenset())
    if extra:
        return f"not worked out: {', '.join(sorted(extra))} is left to be computed"
    if sums and any(map(_multiplies_sums, constants)) and not any(map(_multiplies_sums, wanted)):
        return "not worked out: a product of sums is left to be computed"
    if sums and any(map(_adds_numbers, constants)) and not any(map(_adds_numbers, wanted)):
        return "not worked out: a sum of numbers is left to be computed"
    return ""


def _is_closed(node: n.Expression) -> bool:
    r"""True for an irrational number in closed form, such as `\pi/2` or `\ln 10`, without sums left to be computed."""
    inside = {part.function for part in walk(node) if isinstance(part, n.FunctionCall)}
    try:
        is_rational = rational(node) is not None
    except GrammarError:
        return False
    return not (is_rational or inside - CLOSED or _multiplies_sums(node) or _adds_numbers(node))


def _bases(value: Value) -> set[int]:
    """Returns the number bases, other than ten, of the numerals in a value."""
    if isinstance(value, Scalar):
        return set()
    return {part.base for part in values(value) if isinstance(part, BaseNumber) and part.base != 10}


def functions(*of: Value | n.Expression) -> frozenset[str]:
    nodes: list[n.Expression] = []
    for part in of:
        nodes.extend([part] if isinstance(part, n.Expression) else expressions(part))
    names = {part.function for node in nodes for part in walk(node) if isinstance(part, n.FunctionCall)}
    return frozenset(SAME_FUNCTION.get(name, name) for name in names)


def is_written_number(node: n.Expression) -> bool:
    """True for a number as people write a final result, such as `17`, `-3/4`, `0.25`, `10^{30}`, `2 * 10^-20`. Not `17
    + 25`, `sqrt(9)` or `gcd(12, 18)`: those leave work to the verifier."""
    inside = _unsigned(node)
    match inside:
        case n.Quotient(above, below):
            return _is_factor(_unsigned(above)) and _is_factor(_unsigned(below))
        case n.Product((n.Number(), n.Power() as power)):
            return _is_factor(power)
        case _:
            return _is_factor(inside)


def _unsigned(node: n.Expression) -> n.Expression:
    return node.of if isinstance(node, n.Negation) else node


def _is_factor(node: n.Expression) -> bool:
    match node:
        case n.Power(n.Number(), exponent):
            return isinstance(_unsigned(exponent), n.Number)
        case _:
            return isinstance(node, n.Number)


def leaves_work(node: n.Expression) -> bool:
    """True if a constant could be written as a rational number but is not: `17 + 25`. False for huge values."""
    value = None if is_written_number(node) else rational(node)
    if value is None:
        return False
    return max(value.numerator.bit_length(), value.denominator.bit_length()) <= MAX_WORKED_OUT_BITS


def is_written(node: n.Expression) -> bool:
    """True for a real or complex number as people write a final result, such as `3 + 2i`."""
    match node:
        case n.Negation(of) | n.FunctionCall("percent", (of,)):
            return is_written(of)
        case n.Sum((first, second)):
            real, imaginary = (second, first) if _is_imaginary(first) else (first, second)
            return is_written_number(real) and _is_imaginary(imaginary)
        case _:
            return is_written_number(node)


def _is_multiple(node: n.Expression, of: n.Constant, is_factor: Callable[[n.Expression], bool]) -> bool:
    """True for a constant, or its product with one factor, with or without a sign: `i`, `-i`, `2i`. `is_factor` tells
    which factors count."""
    match node:
        case n.Negation(inside):
            return _is_multiple(inside, of, is_factor)
        case n.Product((factor, constant)) if constant == of:
            return is_factor(factor)
        case _:
            return node == of


def _is_multiple_of_pi(node: n.Expression) -> bool:
    match node:
        case n.Negation(of):
            return _is_multiple_of_pi(of)
        case n.Quotient(above, below):
            return _is_multiple_of_pi(above) and is_written_number(below)
        case _:
            return _is_multiple(node, PI, is_written_number)


def _is_imaginary(node: n.Expression) -> bool:
    match node:
        case n.Negation(of):
            return _is_imaginary(of)
        case n.Quotient(n.Constant() | n.Product() as above, n.Number()):
            return _is_multiple(above, IMAGINARY, is_written_number)
        case _:
            return _is_multiple(node, IMAGINARY, is_written_number)


def is_over_one_denominator(node: n.Expression) -> bool:
    r"""True for a complex number over one common denominator, `\frac{3+2i}{6}` or `\frac16(3+2i)`."""
    match node:
        case n.Negation(of):
            return is_over_one_denominator(of)
        case n.Quotient(n.Sum((first, second)), n.Number()):
            real, imaginary = (second, first) if _is_imaginary(first) else (first, second)
            return _has_digits_only(real) and _is_multiple(imaginary, IMAGINARY, _has_digits_only)
        case n.Product((n.Quotient(n.Number(value), n.Number() as below), n.Sum() as above)) if value == 1:
            return is_over_one_denominator(n.Quotient(above, below))
        case _:
            return False


def _has_digits_only(node: n.Expression) -> bool:
    return isinstance(_unsigned(node), n.Number)


def _intersects(value: Value) -> bool:
    return any(isinstance(part, SetOperation) and part.operation == "intersection" for part in values(value))


def is_solved(value: Value) -> bool:
    """True if each comparison with one unknown has that unknown alone on one side. Also true for values without
    comparisons, and for sets."""
    return not (isinstance(value, RelationValue) or is_set(value)) or all(map(_is_solved, comparisons(value)))


def _is_solved(comparison: n.ComparisonNode) -> bool:
    """True if the only unknown of a comparison stands alone on one side. Comparisons of no or several unknowns count as
    solved."""
    names = symbols(*comparison.operands)
    if len(names) != 1:
        return True
    unknown = [side for side in comparison.operands if symbols(side)]
    return len(unknown) == 1 and (
        isinstance(unknown[0], n.Symbol)
        or (isinstance(unknown[0], n.FunctionCall) and unknown[0].function not in KNOWN)
    )


def _multiplies_sums(node: n.Expression) -> bool:
    for part in walk(node):
        match part:
            case n.Power(n.Sum(), n.Number(value)) if value.denominator == 1 and value > 1:
                return True
            case n.Product(factors) if sum(isinstance(factor, n.Sum) for factor in factors) > 1:
                return True
            case _:
                continue
    return False


def _adds_numbers(node: n.Expression) -> bool:
    sums = (part for part in walk(node) if isinstance(part, n.Sum))
    return any(sum(map(_is_rational, part.terms)) > 1 for part in sums)


def _is_rational(node: n.Expression) -> bool:
    try:
        return not symbols(node) and rational(node) is not None
    except GrammarError:
        return False


# -- simplified


def unsimplified(node: n.Expression) -> str:
    """Returns the reason why an expression is not simplified, or an empty text."""
    reason = next(filter(None, map(_part_unsimplified, walk(node))), "")
    return reason or ("like terms are left to be collected" if _terms(node) > _normal_terms(node) else "")


def _part_unsimplified(part: n.Expression) -> str:
    match part:
        case n.Quotient(above, below):
            if any(
                isinstance(inside, n.FunctionCall) and inside.function in ROOTS for inside in walk(below)
            ) and not symbols(below):
                return "a root is left in a denominator"
            return _fraction_unsimplified(above, below)
        case n.Product((n.Quotient(_, below), n.Sum() as above)) if is_over_one_denominator(part):
            return _fraction_unsimplified(above, below)
        case n.FunctionCall("sqrt" | "cbrt" as name, (of,)):
            return _root_unsimplified(of, 2 if name == "sqrt" else 3)
        case n.FunctionCall("root", (of, n.Number(degree))) if degree.denominator == 1:
            return _root_unsimplified(of, degree.numerator)
        case n.FunctionCall(name, _) if name in BINDERS or name in ("gcd", "lcm", "factorial", "binomial"):
            return f"{name} is left to be computed"
        case _:
            return ""


def _fraction_unsimplified(above: n.Expression, below: n.Expression) -> str:
    first, second = _leading(above), _leading(below)
    if first is None or second is None:
        return ""
    whole = first.denominator == second.denominator == 1
    if second == 1 and not symbols(below):
        return "a fraction is not in lowest terms"
    if (whole and math.gcd(first.numerator, second.numerator) > 1) or share_a_factor(above, below):
        return "a fraction is not in lowest terms"
    return ""


def _leading(node: n.Expression) -> Fraction | None:
    """Returns the numeric factor of an expression: 2 of `2x`, the greatest common one of a sum. None if that has
    fractions."""
    match node:
        case n.Number(value):
            return value
        case n.Negation(of):
            return _leading(of)
        case n.Product((n.Number(value), *_)):
            return value
        case n.Sum(terms):
            numbers = [Fraction(1) if value is None else value for value in map(_leading, terms)]
            if any(value.denominator != 1 for value in numbers):
                return None
            return Fraction(math.gcd(*(value.numerator for value in numbers)))
        case _:
            return Fraction(1)


def _root_unsimplified(of: n.Expression, degree: int) -> str:
    match of:
        case n.Number(value) if value.denominator != 1:
            return "a fraction is left under a root"
        case n.Quotient() if not symbols(of):
            return "a fraction is left under a root"
        case n.Number(value):
            number = abs(value.numerator)
            if number and integer_root(number, degree) ** degree == number:
                return "a root is left to be computed"
            if number and any(count >= degree for _, count in primes(number)):
                return "a root still holds a power"
        case n.Sum() if not symbols(of) and _denests(of):
            return "a root is left nested"
    return ""


def _denests(of: n.Expression) -> bool:
    try:
        found = normal.normal(of)
        return found.whole and normal.denested(found.over) is not None
    except NoNormalFormError:
        return False


def _terms(node: n.Expression) -> int:
    inside = _unsigned(node)
    return len(inside.terms) if isinstance(inside, n.Sum) else 1


def _normal_terms(node: n.Expression) -> int:
    try:
        found = normal.normal(node)
    except NoNormalFormError:
        return _terms(node)
    return max(1, len(found.over)) if found.whole else _terms(node)


# -- same


def alike(answer: Value, expected: Value) -> bool:
    r"""True if two answers are written alike, as the same tree: `1/2` equals `\frac{1}{2}` but not 0.5."""
    return answer == expected and _styles(answer) == _styles(expected)


def _styles(value: Value) -> list[str]:
    return [_style(part) for node in expressions(value) for part in walk(node) if isinstance(part, n.Number)]


def _style(number: n.Number) -> str:
    if "e" in number.written.lower():
        return "scientific"
    if "." in number.written:
        return "decimal"
    return "mixed" if number.value.denominator != 1 and number.written else "digits"
