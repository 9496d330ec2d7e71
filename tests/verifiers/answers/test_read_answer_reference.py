"""Arithmetic that Python reads as well is read alike: its syntax tree, computed in fractions, is the reference."""

from __future__ import annotations

import ast
from fractions import Fraction

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS, examples

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.rational import rational
from verifiers.answers.grammar.reading.read_answer import read_answer
from verifiers.answers.grammar.values import Scalar

OPERANDS = st.sampled_from(
    ["0", "1", "2", "3", "10", "2.5", ".5", "7e2", "1e-2", "(1+2)", "(2-3)", "(2)", "-3", "+4", "(-2)"]
)
OPERATORS = st.sampled_from(["+", "-", "*", "/", "**", "^", " + ", " - ", "/ ", " * ", "", " "])
SOUP = st.tuples(OPERANDS, st.lists(st.tuples(OPERATORS, OPERANDS), max_size=6)).map(
    lambda parts: parts[0] + "".join(sign + operand for sign, operand in parts[1])
)
"""Mostly arithmetic; a sign is missing now and then."""


def computed(node: ast.expr, text: str) -> Fraction:
    """Raises ArithmeticError or ValueError for what has no value here, TypeError for what is no arithmetic."""
    match node:
        case ast.Constant() if isinstance(node.value, int | float):
            return Fraction(text[node.col_offset : node.end_col_offset])
        case ast.UnaryOp(ast.USub(), operand):
            return -computed(operand, text)
        case ast.UnaryOp(ast.UAdd(), operand):
            return computed(operand, text)
        case ast.BinOp(left, operation, right):
            first, second = computed(left, text), computed(right, text)
            match operation:
                case ast.Add():
                    return first + second
                case ast.Sub():
                    return first - second
                case ast.Mult():
                    return first * second
                case ast.Div():
                    return first / second
                case ast.Pow():
                    if second.denominator != 1 or abs(second) > 64 or abs(first) > 10**6 or first == 0 >= second:
                        raise ValueError("too large, not rational or undefined")
                    return first**second.numerator
    raise TypeError(ast.dump(node))


@settings(max_examples=examples(120, quick=FROM_STRANGERS), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SOUP)
def test_arithmetic_is_read_as_python_reads_it(text: str) -> None:
    source = text.strip().replace("^", "**")
    try:
        tree = ast.parse(source, mode="eval").body
        reference = computed(tree, source)
    except (SyntaxError, TypeError, ArithmeticError, ValueError):
        return
    try:
        read = read_answer(text, variables=None)
    except GrammarError:
        return
    assert isinstance(read, Scalar), text
    assert rational(read.of) == reference, text


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SOUP, SOUP)
def test_what_reads_as_the_same_number_is_the_same_number(first: str, second: str) -> None:
    """Two texts that Python tells apart are never one value: nothing of a text is dropped."""
    values: list[tuple[object, Fraction]] = []
    for text in (first, second, f"{first}+{second}", f"({first})"):
        source = text.strip().replace("^", "**")
        try:
            reference = computed(ast.parse(source, mode="eval").body, source)
            read = read_answer(text, variables=None)
        except (SyntaxError, TypeError, ArithmeticError, ValueError):
            continue
        assert isinstance(read, Scalar)
        values.append((rational(read.of), reference))
    assert all((one == other) == (its == others) for one, its in values for other, others in values)
