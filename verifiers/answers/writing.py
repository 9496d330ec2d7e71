"""Trees as text, for evidence: plain mathematics that can be read again. Bounded in size."""

from __future__ import annotations

from fractions import Fraction

from verifiers.answers.grammar.nodes import (
    Call,
    Comparison,
    Constant,
    Expression,
    Negation,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    Symbol,
)
from verifiers.answers.reading import clipped, shown
from verifiers.answers.values import (
    Approximated,
    BaseNumber,
    Builder,
    Choice,
    FiniteSet,
    Images,
    Infinity,
    Interval,
    Listing,
    Matrix,
    Named,
    NumberSet,
    Piecewise,
    Quantity,
    Ratio,
    Relation,
    Scalar,
    SetOperation,
    Tuple,
    Value,
    Words,
)

MAX_SHOWN = 600


def written(node: Expression) -> str:
    text = _expression(node)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def _number(value: Fraction) -> str:
    return shown(value)


def _expression(node: Expression) -> str:
    match node:
        case Number(value):
            return _number(value)
        case Symbol(name) | Constant(name):
            return name
        case Negation(of):
            return f"-{_tight(of)}"
        case Sum(parts):
            return " + ".join(map(_tight, parts)).replace(" + -", " - ")
        case Product(parts):
            return "*".join(map(_tight, parts))
        case Quotient(above, below):
            return f"{_tight(above)}/{_tight(below)}"
        case Power(base, exponent):
            return f"{_tight(base)}^{_tight(exponent)}"
        case Call(name, arguments):
            return f"{name}({', '.join(map(_expression, arguments))})"


def _tight(node: Expression) -> str:
    text = _expression(node)
    alone = isinstance(node, Symbol | Constant | Call) or (
        isinstance(node, Number) and node.value.denominator == 1 and node.value >= 0
    )
    return text if alone else f"({text})"


def described(value: Value) -> str:
    """What was read, in one line."""
    text = _value(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def _all(items: tuple[Value, ...]) -> str:
    return ", ".join(_value(item) for item in items[:50]) + (", ..." if len(items) > 50 else "")


def _value(value: Value) -> str:
    match value:
        case Scalar(of):
            return _expression(of)
        case Quantity(of, unit):
            atoms = "*".join(clipped(name) if power == 1 else f"{clipped(name)}^{power}" for name, power in unit)
            return f"{_tight(of)} {atoms}"
        case BaseNumber(digits, base):
            return f"{digits} in base {base}"
        case Infinity(sign):
            return "infinity" if sign == 1 else "-infinity"
        case Tuple(items):
            return f"({_all(items)})"
        case Listing(items):
            return f"several: {_all(items)}"
        case FiniteSet(items):
            return f"{{{_all(items)}}}"
        case Interval(low, high, closed_low, closed_high):
            ends = [_value(end) if isinstance(end, Infinity) else _expression(end) for end in (low, high)]
            return f"interval {'[' if closed_low else '('}{ends[0]}, {ends[1]}{']' if closed_high else ')'}"
        case NumberSet(name):
            return f"the numbers {name}"
        case SetOperation(operation, parts):
            return f" {operation} ".join(f"({_value(part)})" for part in parts)
        case Builder(symbol, within, condition):
            inside = "" if within is None else f" in {_value(within)}"
            return f"{{{symbol}{inside} | {'' if condition is None else _value(condition)}}}"
        case Images(items, symbol, NumberSet(within), name):
            about = "" if name is None else f"{clipped(name)} among "
            listed = ", ".join(map(_expression, items[:50])) + (", ..." if len(items) > 50 else "")
            return f"{about}{{{listed} | {symbol} in {within}}}"
        case Ratio(items):
            return " : ".join(map(_tight, items))
        case Piecewise(branches):
            return "; ".join(
                f"{_expression(of)} if {'nothing else' if condition is None else _value(condition)}"
                for of, condition in branches
            )
        case Approximated(of, _, near):
            return f"{_value(of)}, about {_expression(near)}"
        case Relation(joined, parts):
            return f" {joined} ".join(_comparison(part) for part in parts)
        case Named(name, of):
            return f"{_value(name)} = {_value(of)}"
        case Matrix(rows):
            return "[" + "; ".join(", ".join(map(_expression, row)) for row in rows) + "]"
        case Choice(label):
            return f"choice {clipped(label)}"
        case Words(text):
            return f"the words {clipped(text)!r}"


def _comparison(part: Comparison | Relation) -> str:
    if isinstance(part, Relation):
        return f"({_value(part)})"
    text = _expression(part.operands[0])
    for relation, operand in zip(part.relations, part.operands[1:], strict=True):
        text += f" {relation} {_expression(operand)}"
    return text
