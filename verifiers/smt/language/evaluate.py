"""Value of a term in exact arithmetic of our own, independent of any solver.

Lazy where the language guards: `and`, `or` and `ite` evaluate no further than they must, from left to right. Division
by zero, quantifiers, symbols without a value and numbers above MAX_BITS raise Undefined.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator
from fractions import Fraction
from itertools import combinations
from math import floor
from typing import Any

from verifiers.smt.language.bit_vectors import bit_value
from verifiers.smt.language.errors import Undefined
from verifiers.smt.language.recursion import recurse
from verifiers.smt.language.terms import Term
from verifiers.smt.language.values import ArrayValue, FunctionTable, Interpretation, Value, same

MAX_BITS = 14_000
"""Maximum size of a number, numerator or denominator, in bits: the limit for decimal digits."""
Evaluation = Generator[Term, Value, Value]


def evaluate(term: Term, interpretation: Interpretation | None = None) -> Value:
    """Returns the value of an SMT term, given values of its symbols. Raises Undefined."""
    known: dict[int, Value] = {}

    def value(wanted: Term) -> Any:
        return known[wanted.number] if wanted.number in known else remembered(wanted)

    def remembered(wanted: Term) -> Evaluation:
        known[wanted.number] = found = yield from _value(wanted, interpretation or {})
        return found

    return recurse(term, value)  # type: ignore[no-any-return]


def _value(term: Term, interpretation: Interpretation) -> Evaluation:
    match term.op:
        case "value":
            return term.payload  # type: ignore[no-any-return]
        case "ite":
            condition = yield term.args[0]
            return (yield term.args[1 if condition else 2])
        case "and" | "or":
            deciding = term.op == "or"
            for each in term.args:
                if (yield each) is deciding:
                    return deciding
            return not deciding
        case "forall" | "exists":
            raise Undefined("a quantifier", quantified=True)
    args = []
    for each in term.args:
        args.append((yield each))  # noqa: PERF401 - a generator has no comprehension that yields
    match term.op:
        case "apply":
            return _applied(term, args, interpretation)
        case "variable":
            raise Undefined(f"the variable {term.payload[0]} has no value")
        case "=":
            return same(args[0], args[1], term.args[0].sort)
        case "distinct":
            sort = term.args[0].sort
            return not any(same(left, right, sort) for left, right in combinations(args, 2))
        case "constant_array":
            return ArrayValue(args[0])
        case "select":
            return args[0].at(args[1])  # type: ignore[union-attr]
        case "store":
            return args[0].with_entry(args[1], args[2])  # type: ignore[union-attr]
    computed = ARITHMETIC.get(term.op)
    return bit_value(term, args) if computed is None else _bounded(computed(*args))


def _applied(term: Term, args: list[Value], interpretation: Interpretation) -> Value:
    meaning = interpretation.get(term.payload)
    if meaning is None:
        raise Undefined(f"{term.payload.name} has no value")
    if isinstance(meaning, FunctionTable):
        return meaning.entries.get(tuple(args), meaning.default)
    return meaning


def _bounded(value: Value) -> Value:
    if isinstance(value, Fraction):
        size = max(value.numerator.bit_length(), value.denominator.bit_length())
    else:
        size = value.bit_length() if isinstance(value, int) else 0
    if size > MAX_BITS:
        raise Undefined(f"a number of more than {MAX_BITS:,} bits")
    return value


def _sum(*args: Any) -> Any:
    return sum(args[1:], args[0])


def _product(*args: Any) -> Any:
    made = args[0]
    for each in args[1:]:
        made = _bounded(made * each)
    return made


def _minus(*args: Any) -> Any:
    return args[0] - sum(args[1:])


def _divided(left: Any, right: Any) -> Any:
    if not right:
        raise Undefined("a division by zero", by_zero=True)
    return Fraction(left) / right


def _div(left: Any, right: Any) -> Any:
    """Returns the Euclidean quotient: it leaves a remainder from 0 to below the divisor's absolute value."""
    if not right:
        raise Undefined("a division by zero", by_zero=True)
    return left // right if right > 0 else -(left // -right)


def _mod(left: Any, right: Any) -> Any:
    return left - right * _div(left, right)


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "not": operator.not_,
    "xor": operator.ne,
    "+": _sum,
    "*": _product,
    "-": _minus,
    "negate": operator.neg,
    "/": _divided,
    "div": _div,
    "mod": _mod,
    "abs": abs,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "to_real": Fraction,
    "to_int": floor,
    "is_int": lambda value: value.denominator == 1,
    "ubv_to_int": lambda value: value,
}
