"""The value of a term, in exact arithmetic of our own: the voice that owes nothing to any solver.

Lazy where the language's guards are: `and`, `or` and `ite` look no further than they must, from left to right. Division
by zero, quantifiers, symbols without a value and numbers of more than MAX_BITS have no value here: Undefined.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

from verifiers.smt.bit_vectors import bit_value
from verifiers.smt.errors import Undefined
from verifiers.smt.terms import Term
from verifiers.smt.values import ArrayValue, Interpretation, Table, Value, same

MAX_BITS = 14_000
"""Of a number, or of a numerator or denominator: what still can be written in decimal digits."""


def evaluate(term: Term, interpretation: Interpretation | None = None) -> Value:
    """Raises Undefined."""
    known: dict[int, Value] = {}
    interpretation = interpretation or {}
    stack = [_Frame(term)]
    while stack:
        frame = stack[-1]
        current = frame.term
        if current.number in known:
            stack.pop()
            continue
        wanted = _next(frame, known)
        if wanted is not None:
            stack.append(_Frame(wanted))
            continue
        if current.number not in known:
            known[current.number] = _value(current, known, interpretation)
        stack.pop()
    return known[term.number]


@dataclass(slots=True)
class _Frame:
    term: Term
    place: int = 0
    """Of the first argument that is not known to be there, or not known to matter."""


def _next(frame: _Frame, known: dict[int, Value]) -> Term | None:
    """The argument that is needed next. Where that settles the term, its value is entered."""
    term, args = frame.term, frame.term.args
    match term.op:
        case "ite":
            condition = known.get(args[0].number)
            if condition is None:
                return args[0]
            chosen = args[1] if condition else args[2]
            if chosen.number not in known:
                return chosen
            known[term.number] = known[chosen.number]
            return None
        case "and" | "or":
            deciding = term.op == "or"
            while frame.place < len(args):
                value = known.get(args[frame.place].number)
                if value is None:
                    return args[frame.place]
                if value is deciding:
                    break
                frame.place += 1
            known[term.number] = deciding if frame.place < len(args) else not deciding
            return None
        case "forall" | "exists":
            raise Undefined("a quantifier", quantified=True)
    while frame.place < len(args):
        if args[frame.place].number not in known:
            return args[frame.place]
        frame.place += 1
    return None


def _value(term: Term, known: dict[int, Value], interpretation: Interpretation) -> Value:
    args = [known[each.number] for each in term.args]
    match term.op:
        case "value":
            return term.payload  # type: ignore[no-any-return]
        case "apply":
            return _applied(term, args, interpretation)
        case "variable":
            raise Undefined(f"the variable {term.payload[0]} has no value")
        case "=":
            return same(args[0], args[1], term.args[0].sort)
        case "distinct":
            sort = term.args[0].sort
            return not any(same(left, right, sort) for place, left in enumerate(args) for right in args[place + 1 :])
        case "constant_array":
            return ArrayValue(args[0])
        case "select":
            return args[0].at(args[1])  # type: ignore[union-attr]
        case "store":
            return args[0].with_entry(args[1], args[2])  # type: ignore[union-attr]
    computed = ARITHMETIC.get(term.op)
    if computed is not None:
        return _bounded(computed(*args))
    return bit_value(term, args)


def _applied(term: Term, args: list[Value], interpretation: Interpretation) -> Value:
    meaning = interpretation.get(term.payload)
    if meaning is None:
        raise Undefined(f"{term.payload.name} has no value")
    if isinstance(meaning, Table):
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
    """The quotient that leaves a remainder from 0 to below the divisor's size."""
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
