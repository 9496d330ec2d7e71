"""Values of bit vectors: SMT-LIB's FixedSizeBitVectors.

Everything wraps around. Division by zero is fixed: the quotient is all ones, the remainder is the dividend; the signed
operations derive from these by signs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from verifiers.smt.language.terms import INT, Term


def _signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


def _sdiv(left: int, right: int) -> int:
    """Returns the signed quotient, rounded towards zero; by zero: -1, or 1 for a negative dividend."""
    if not right:
        return 1 if left < 0 else -1
    size = abs(left) // abs(right)
    return size if (left < 0) == (right < 0) else -size


def _srem(left: int, right: int) -> int:
    """Returns the signed remainder, with the sign of the dividend."""
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
    """Returns the value of a bit-vector term or conversion; bit vectors are non-negative integers."""
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
