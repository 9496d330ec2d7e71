"""Formats trees as text for evidence: plain mathematics that parses again. Bounded in size."""

from __future__ import annotations

from fractions import Fraction

from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar import values as v
from verifiers.contract.text import escaped

MAX_SHOWN = 600


def written(node: n.Expression) -> str:
    return _shortened(_expression(node))


def shown(value: Fraction) -> str:
    """Formats a rational number; for a very large one gives only its number of bits, because printing it is slow."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > 640:
        return f"a number of about {value.numerator.bit_length()} / {value.denominator.bit_length()} bits"
    return str(value)


def _expression(node: n.Expression) -> str:
    match node:
        case n.Number(value):
            return shown(value)
        case n.Symbol(name) | n.Constant(name):
            return name
        case n.Negation(of):
            return f"-{_tight(of)}"
        case n.Sum(parts):
            return " + ".join(map(_tight, parts)).replace(" + -", " - ")
        case n.Product(parts):
            return "*".join(map(_tight, parts))
        case n.Quotient(above, below):
            return f"{_tight(above)}/{_tight(below)}"
        case n.Power(base, exponent):
            return f"{_tight(base)}^{_tight(exponent)}"
        case n.FunctionCall(name, arguments):
            return f"{name}({', '.join(map(_expression, arguments))})"


def _tight(node: n.Expression) -> str:
    text = _expression(node)
    alone = isinstance(node, n.Symbol | n.Constant | n.FunctionCall) or (
        isinstance(node, n.Number) and node.value.denominator == 1 and node.value >= 0
    )
    return text if alone else f"({text})"


def described(value: v.Value) -> str:
    """Formats a parsed value in one line."""
    return _shortened(_value(value))


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def _all(items: tuple[v.Value, ...]) -> str:
    return ", ".join(_value(item) for item in items[:50]) + (", ..." if len(items) > 50 else "")


def _value(value: v.Value) -> str:
    match value:
        case v.Scalar(of):
            return _expression(of)
        case v.Quantity(of, unit):
            atoms = "*".join(escaped(name) if power == 1 else f"{escaped(name)}^{power}" for name, power in unit)
            return f"{_tight(of)} {atoms}"
        case v.BaseNumber(digits, base):
            return f"{digits} in base {base}"
        case v.Infinity(sign):
            return "infinity" if sign == 1 else "-infinity"
        case v.Tuple(items):
            return f"({_all(items)})"
        case v.Listing(items):
            return f"several: {_all(items)}"
        case v.FiniteSet(items):
            return f"{{{_all(items)}}}"
        case v.Interval(low, high, closed_low, closed_high):
            ends = [_value(end) if isinstance(end, v.Infinity) else _expression(end) for end in (low, high)]
            return f"interval {'[' if closed_low else '('}{ends[0]}, {ends[1]}{']' if closed_high else ')'}"
        case v.NumberSet(name):
            return f"the numbers {name}"
        case v.SetOperation(operation, parts):
            return f" {operation} ".join(f"({_value(part)})" for part in parts)
        case v.Builder(symbol, within, condition):
            inside = "" if within is None else f" in {_value(within)}"
            return f"{{{symbol}{inside} | {'' if condition is None else _value(condition)}}}"
        case v.Images(items, symbol, v.NumberSet(within), name):
            about = "" if name is None else f"{escaped(name)} among "
            listed = ", ".join(map(_expression, items[:50])) + (", ..." if len(items) > 50 else "")
            return f"{about}{{{listed} | {symbol} in {within}}}"
        case v.Ratio(items):
            return " : ".join(map(_tight, items))
        case v.Piecewise(branches):
            return "; ".join(
                f"{_expression(of)} if {'nothing else' if condition is None else _value(condition)}"
                for of, condition in branches
            )
        case v.Approximated(of, _, near):
            return f"{_value(of)}, about {_expression(near)}"
        case v.RelationValue(joined, parts):
            return f" {joined} ".join(_comparison(part) for part in parts)
        case v.Named(name, of):
            return f"{_value(name)} = {_value(of)}"
        case v.Matrix(rows):
            return "[" + "; ".join(", ".join(map(_expression, row)) for row in rows) + "]"
        case v.Choice(label):
            return f"choice {escaped(label)}"
        case v.ChemicalFormula(text):
            return f"the formula {text}"
        case v.TextAnswer(text):
            return f"the words {escaped(text)!r}"


def _comparison(part: n.ComparisonNode | v.RelationValue) -> str:
    if isinstance(part, v.RelationValue):
        return f"({_value(part)})"
    text = _expression(part.operands[0])
    for relation, operand in zip(part.relations, part.operands[1:], strict=True):
        text += f" {relation} {_expression(operand)}"
    return text
