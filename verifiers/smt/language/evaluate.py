"""Value of a term in exact arithmetic of our own, independent of any solver.

Lazy where the language guards: `and`, `or` and `ite` evaluate no further than they must, from left to right. Division
by zero, quantifiers, symbols without a value and numbers above MAX_BITS raise Undefined.

Values of bit vectors: SMT-LIB's FixedSizeBitVectors.

Everything wraps around. Division by zero is fixed: the quotient is all ones, the remainder is the dividend; the signed
operations derive from these by signs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Sequence
from fractions import Fraction
from itertools import combinations
from math import floor
from typing import Any

from verifiers.smt.language.errors import Undefined
from verifiers.smt.language.terms import INT, Term, recurse
from verifiers.smt.language.values import ArrayValue, FunctionTable, Interpretation, Value, same


def _signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


def _sdiv(left: int, right: int) -> int:
    """Computes the quotient of two signed bit vectors, rounded towards zero. A division by zero gives -1, or 1 for a
    negative dividend."""
    if not right:
        return 1 if left < 0 else -1
    size = abs(left) // abs(right)
    return size if (left < 0) == (right < 0) else -size


def _srem(left: int, right: int) -> int:
    """Computes the remainder of two signed bit vectors, with the sign of the dividend; by zero: the dividend."""
    if not right:
        return left
    size = abs(left) % abs(right)
    return -size if left < 0 else size


def _rotated(value: int, left: int, width: int) -> int:
    return (value << left | value >> (width - left)) & ((1 << width) - 1)


UNSIGNED: dict[str, Callable[[int, int, int, int], int]] = {
    "bvand": lambda a, b, w, m: a & b,
    "bvor": lambda a, b, w, m: a | b,
    "bvxor": lambda a, b, w, m: a ^ b,
    "bvnand": lambda a, b, w, m: ~(a & b),
    "bvnor": lambda a, b, w, m: ~(a | b),
    "bvxnor": lambda a, b, w, m: ~(a ^ b),
    "bvadd": lambda a, b, w, m: a + b,
    "bvsub": lambda a, b, w, m: a - b,
    "bvmul": lambda a, b, w, m: a * b,
    "bvudiv": lambda a, b, w, m: a // b if b else m,
    "bvurem": lambda a, b, w, m: a % b if b else a,
    "bvshl": lambda a, b, w, m: a << b if b < w else 0,
    "bvlshr": lambda a, b, w, m: a >> b if b < w else 0,
    "bvashr": lambda a, b, w, m: _signed(a, w) >> min(b, w),
    "bvsdiv": lambda a, b, w, m: _sdiv(_signed(a, w), _signed(b, w)),
    "bvsrem": lambda a, b, w, m: _srem(_signed(a, w), _signed(b, w)),
    "bvsmod": lambda a, b, w, m: _signed(a, w) % _signed(b, w) if b else a,  # Python's has the divisor's sign, too
}
ORDER: dict[str, tuple[Callable[[int, int], bool], bool]] = {
    "bvult": (operator.lt, False),
    "bvule": (operator.le, False),
    "bvugt": (operator.gt, False),
    "bvuge": (operator.ge, False),
    "bvslt": (operator.lt, True),
    "bvsle": (operator.le, True),
    "bvsgt": (operator.gt, True),
    "bvsge": (operator.ge, True),
}


def bit_value(term: Term, args: Sequence[Any]) -> bool | int:
    """Computes a bit-vector operation or conversion from the values of its arguments. Bit-vector values are
    non-negative integers."""
    op, index = term.op, term.payload
    if term.args[0].sort == INT:
        return int(args[0]) % (1 << term.sort.width)
    width = term.args[0].sort.width
    mask = (1 << width) - 1
    if op in UNSIGNED:
        return UNSIGNED[op](args[0], args[1], width, mask) & mask
    if op in ORDER:
        test, signed = ORDER[op]
        left, right = (_signed(each, width) for each in args) if signed else args
        return test(left, right)
    match op:
        case "bvnot":
            return ~int(args[0]) & mask
        case "bvneg":
            return -int(args[0]) & mask
        case "bvcomp":
            return int(args[0] == args[1])
        case "concat":
            return int(args[0]) << term.args[1].sort.width | int(args[1])
        case "extract":
            return (int(args[0]) >> int(index[1])) & ((1 << term.sort.width) - 1)
        case "zero_extend":
            return int(args[0])
        case "sign_extend":
            return _signed(args[0], width) & ((1 << term.sort.width) - 1)
        case "rotate_left":
            return _rotated(int(args[0]), int(index[0]), width)
        case "rotate_right":
            return _rotated(int(args[0]), width - int(index[0]), width)
        case "repeat":
            return sum(int(args[0]) << (width * place) for place in range(int(index[0])))
        case "sbv_to_int":
            return _signed(args[0], width)
    raise AssertionError(f"no value rule for {op}")


MAX_BITS = 14_000
"""Maximum size of a number, numerator or denominator, in bits: the limit for decimal digits."""
Evaluation = Generator[Term, Value, Value]


def evaluate(term: Term, interpretation: Interpretation | None = None) -> Value:
    """Computes the value of an SMT term, given values of its symbols. Raises Undefined if it has none, such as a
    division by zero."""
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
    """Computes the integer quotient whose remainder lies from 0 to below the divisor's absolute value. Raises Undefined
    for a zero divisor."""
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
