"""Shows that what an equality cancels is not a division by zero.

Two sides that agree at a point may differ in where they have a value: x(x + |x|)/(x + |x|) is x only for positive x. A
divisor of one side only must vanish rarely: none of its branches, such as x + x and x - x, is zero everywhere. Divisors
made of functions outside a short list are not accepted, nor are values of unknown functions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fractions import Fraction

from verifiers.answers.algebra import normal
from verifiers.answers.algebra.intervals import DIGITS, OpenError, apart, contains_zero, enclosure
from verifiers.answers.algebra.monomials import NoNormalFormError, scaled
from verifiers.answers.algebra.rewriting import OPAQUE
from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import symbols, walk
from verifiers.answers.grammar.rational import rational

ANALYTIC = frozenset(
    {"exp", "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "factorial", "ln", "log"}
)
"""Functions that do not vanish on an interval without vanishing everywhere they are sampled."""
TOTAL = ANALYTIC - {"factorial"} | {"abs", "sqrt", "cbrt", "conj"}
"""Functions with a value for all numbers, up to exceptions that are found as divisors."""
OTHERS = (n.Number(Fraction(5, 7)), n.Number(Fraction(11, 3)))
BRANCHED = frozenset({"abs", "sqrt", "cbrt", "root"})
MAX_BRANCHES = 64


def nonzero_parts(node: n.Expression) -> frozenset[n.Expression]:
    """Returns the non-constant factors that must not be zero for an expression to have a value."""
    return frozenset(part for outer in _restricted(node) for part in _factors(outer) if symbols(part))


def _restricted(node: n.Expression) -> Iterator[n.Expression]:
    for part in walk(node):
        match part:
            case n.Quotient(_, below):
                yield below
            case n.Power(base, exponent) if not _is_positive(exponent):
                yield base
            case n.FunctionCall("tan" | "sec", (of,)):
                yield n.FunctionCall("cos", (of,))
            case n.FunctionCall("cot" | "csc", (of,)):
                yield n.FunctionCall("sin", (of,))
            case n.FunctionCall("tanh", (of,)):
                yield n.FunctionCall("cosh", (of,))
            case n.FunctionCall("ln", (of,)):
                yield of
            case n.FunctionCall("log", (of, base)):
                yield from (of, base, n.minus(base, n.ONE))
            case n.FunctionCall("mod" | "floordiv", (_, of)):
                yield of
            case _:
                continue


def _is_positive(exponent: n.Expression) -> bool:
    try:
        value = rational(exponent)
    except GrammarError:
        return False
    return value is not None and value > 0


def _factors(node: n.Expression) -> Iterator[n.Expression]:
    """Yields factors of an expression, at least one of which is zero wherever the expression is zero."""
    match node:
        case (
            n.Negation(of)
            | n.Quotient(of, _)
            | n.FunctionCall("sqrt" | "cbrt" | "abs" | "sign" | "conj", (of,))
            | n.FunctionCall("root", (of, _))
        ):
            yield from _factors(of)
        case n.Power(base, exponent) if _is_positive(exponent):
            yield from _factors(base)
        case n.Product(factors):
            for factor in factors:
                yield from _factors(factor)
        case _:
            yield node


def cancels_safely(
    first: n.Expression, second: n.Expression, points: Callable[[], Iterable[Mapping[str, n.Expression]]]
) -> bool:
    """True if neither of two equal expressions has a value for fewer numbers than the other, up to exceptions: each
    divisor of only one is shown to vanish rarely, and no call with a smaller domain is cancelled. `points` returns
    sample values of the symbols."""
    parts = (part for part in (*walk(first), *walk(second)) if isinstance(part, n.Quotient | n.Power | n.FunctionCall))
    if first == second or not any(map(symbols, parts)):
        return True
    sides = ((first, second), (second, first))
    return all(
        all(_vanishes_rarely(part, points()) for part in _only(nonzero_parts(one), nonzero_parts(other)))
        and all(_is_nonzero(base) for base in {*_constant_bases(one)} - {*_constant_bases(other)})
        and not any(_is_cancelled(one, call, points()) for call in _only(_partial_calls(one), _partial_calls(other)))
        for one, other in sides
    )


def _only(parts: Collection[n.Expression], others: Iterable[n.Expression]) -> list[n.Expression]:
    """Returns the parts of one expression that another does not have, not even with another rational factor."""
    known = {key for other in others for key in _keys(other)} if parts else set()
    return [part for part in parts if known.isdisjoint(_keys(part))]


def _constant_bases(node: n.Expression) -> Iterator[n.Expression]:
    for part in walk(node):
        if isinstance(part, n.Power) and symbols(part.exponent) and not symbols(part.base):
            yield part.base


def _is_nonzero(node: n.Expression) -> bool:
    try:
        return not contains_zero(enclosure(DIGITS[0]).value(node))
    except (OpenError, GrammarError):
        return False


def _partial_calls(node: n.Expression) -> list[n.Expression]:
    """Returns the calls of functions with symbols that may lack a value on an interval."""
    return [
        part
        for part in dict.fromkeys(walk(node))
        if isinstance(part, n.FunctionCall) and symbols(part) and not _is_total(part)
    ]


def _is_total(call: n.FunctionCall) -> bool:
    if call.function == "root":
        return not symbols(call.arguments[1])
    return call.function in TOTAL


def _is_cancelled(node: n.Expression, call: n.Expression, points: Iterable[Mapping[str, n.Expression]]) -> bool:
    """True unless the value of an expression is shown to depend on the value of a call."""
    keys = _keys(call)
    other = n.Symbol("another value#")

    def replaced(part: n.Expression) -> n.Expression | None:
        is_call = isinstance(part, n.FunctionCall) and not _is_total(part)
        return other if is_call and not set(keys).isdisjoint(_keys(part)) else None

    changed, held = n.mapped(node, replaced), enclosure(DIGITS[0])
    for point in points:
        try:
            values = [held.value(n.substitute(changed, {**point, other.name: value})) for value in OTHERS]
        except (OpenError, GrammarError):
            continue
        if apart(*values):
            return False
    return True


def _keys(node: n.Expression) -> list[object]:
    """Returns keys of an expression and of its negative. Expressions that differ by a rational factor share them."""
    try:
        form = normal.normal(node, real=True)
    except (NoNormalFormError, RecursionError):
        return [node]
    values = form.over.values()
    content = Fraction(math.gcd(*(one.numerator for one in values)), math.lcm(*(one.denominator for one in values)))
    if not content:
        return [node]
    return [(frozenset(scaled(form.over, sign / content).items()), frozenset(form.under.items())) for sign in (1, -1)]


def _is_meromorphic(node: n.Expression) -> bool:
    """True if an expression is made of symbols by arithmetic, so that one value proves that it is rarely zero."""
    if any(OPAQUE in name for name in symbols(node)):
        return False
    for part in walk(node):
        if isinstance(part, n.FunctionCall) or (
            isinstance(part, n.Power) and symbols(part) and not _is_whole(part.exponent)
        ):
            return False
    return True


def _is_whole(node: n.Expression) -> bool:
    inside = node.of if isinstance(node, n.Negation) else node
    return isinstance(inside, n.Number) and inside.value.denominator == 1


def _algebraic(node: n.Expression) -> n.Expression | None:
    """Rewrites the sine or cosine of an inverse function by a root; None for anything else."""
    match node:
        case n.FunctionCall("sin", (n.FunctionCall("asin", (of,)),)) | n.FunctionCall(
            "cos", (n.FunctionCall("acos", (of,)),)
        ):
            return n.mapped(of, _algebraic)
        case n.FunctionCall("sin" | "cos", (n.FunctionCall("asin" | "acos" | "atan" as name, (of,)),)):
            of = n.mapped(of, _algebraic)
            square = n.Power(of, n.TWO)
            root = n.FunctionCall("sqrt", (n.Sum((n.ONE, square)) if name == "atan" else n.minus(n.ONE, square),))
            return n.Quotient(of if node.function == "sin" else n.ONE, root) if name == "atan" else root
        case _:
            return None


def _vanishes_rarely(node: n.Expression, points: Iterable[Mapping[str, n.Expression]]) -> bool:
    """True if no branch of an expression is zero at a sample point at which it has a value, and there is one. An
    expression without branches is zero everywhere or rarely, so that one other value is enough."""
    if any(OPAQUE in name for name in symbols(node)):
        return False
    if isinstance(node, n.FunctionCall) and node.function in ("factorial", "exp"):
        return True
    node = n.mapped(node, _algebraic)
    branched: list[n.Expression] = []
    for part in walk(node):
        if not symbols(part) or part in branched:
            continue
        match part:
            case n.FunctionCall(name) if name in BRANCHED:
                branched.append(part)
            case n.FunctionCall("atan", (of,)) if _is_meromorphic(of) and not nonzero_parts(of):
                continue
            case n.FunctionCall(name) if name not in ANALYTIC:
                return False
            case n.Power(_, n.Quotient(n.Number(), n.Number()) | n.Number() as exponent) if not _is_whole(exponent):
                branched.append(part)
            case _:
                continue
    degrees = [_degree(part) for part in branched]
    if math.prod(degrees) > MAX_BRANCHES:
        return False
    choices = [dict(zip(branched, turns, strict=True)) for turns in itertools.product(*map(_turns, degrees))]
    branches = [_branch(node, choice) for choice in choices]
    held, seen, rational_function = enclosure(DIGITS[0]), False, _is_meromorphic(node)
    for point in points:
        try:
            values = [held.value(n.substitute(branch, point)) for branch in branches]
        except (OpenError, GrammarError):
            continue
        if not any(map(contains_zero, values)):
            seen = True
        elif not rational_function:
            return False
    return seen


def _degree(node: n.Expression) -> int:
    """Returns the number of branches of a root, a fractional power or an absolute value."""
    match node:
        case n.FunctionCall("cbrt", _):
            return 3
        case n.FunctionCall("root", (_, degree)) | n.Power(_, degree):
            value = None if symbols(degree) else rational(degree)
            if value is None:
                return MAX_BRANCHES + 1
            return value.denominator if isinstance(node, n.Power) else math.ceil(abs(value))
        case _:
            return 2


def _turns(degree: int) -> list[n.Expression]:
    """Returns the roots of unity of a degree."""
    turns = [n.Product((n.Number(Fraction(2 * k, degree)), n.Constant("pi"), n.Constant("i"))) for k in range(degree)]
    return [n.ONE, n.number(-1)] if degree == 2 else [n.FunctionCall("exp", (turn,)) for turn in turns]


def _branch(node: n.Expression, choice: Mapping[n.Expression, n.Expression]) -> n.Expression:
    inside = n.with_children(node, tuple(_branch(part, choice) for part in n.children(node)))
    if node not in choice:
        return inside
    value = n.children(inside)[0] if isinstance(node, n.FunctionCall) and node.function == "abs" else inside
    return n.Product((choice[node], value))
