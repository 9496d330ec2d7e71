"""SMT-LIB text of values as a submission must write them: complete, one definition per symbol."""

from __future__ import annotations

from fractions import Fraction

from verifiers.smt.language.errors import ClaimError
from verifiers.smt.language.render import name_text
from verifiers.smt.language.terms import Function, Sort
from verifiers.smt.language.values import ArrayValue, Element, FunctionTable, Value

MOST_CHARS = 200_000


def definition_text(function: Function, value: Value | FunctionTable | None) -> str:
    """Renders `(define-fun f ((a0 Int)) Int ...)`. A value of None (the solver left it open) becomes zero, false, or
    similar.

    Raises ClaimError for a value that SMT-LIB cannot express or that is too long.
    """
    if not isinstance(value, FunctionTable):
        value = FunctionTable({}, zero(function.range) if value is None else value)
    parameters = [f"a{place}" for place in range(len(function.domain))]
    typed = " ".join(f"({name} {sort})" for name, sort in zip(parameters, function.domain, strict=True))
    body = plain(value.default, function.range)
    for key, held in value.entries.items():
        named = zip(parameters, key, function.domain, strict=True)
        same = [f"(= {name} {plain(each, sort)})" for name, each, sort in named]
        asked = same[0] if len(same) == 1 else f"(and {' '.join(same)})"
        body = f"(ite {asked} {plain(held, function.range)} {body})"
    text = f"(define-fun {name_text(function.name)} ({typed}) {function.range} {body})"
    if len(text) > MOST_CHARS:
        raise ClaimError("its values are too long to write")
    return text


def plain(value: Value, sort: Sort) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() if sort.name == "BitVec":
            return f"#b{value:0{sort.width}b}"
        case int() | Fraction() if sort.name == "Real":
            number = Fraction(value)
            size = f"{abs(number.numerator)}.0"
            size = size if number.denominator == 1 else f"(/ {size} {number.denominator}.0)"
            return f"(- {size})" if number < 0 else size
        case int():
            return f"(- {-value})" if value < 0 else str(value)
        case ArrayValue(default, entries):
            index, element = sort.parameters
            text = f"((as const {sort}) {plain(default, element)})"
            for place, held in entries:
                text = f"(store {text} {plain(place, index)} {plain(held, element)})"
            return text
        case Element():
            raise ClaimError("elements of declared sorts have no literals")
    raise ClaimError("this value has no literal")


def zero(sort: Sort) -> Value:
    """Returns a simple value of an SMT sort. Raises ClaimError for declared sorts, whose elements have no literals."""
    match sort.name:
        case "Bool":
            return False
        case "Int" | "BitVec":
            return 0
        case "Real":
            return Fraction(0)
        case "Array" if not sort.declared:
            return ArrayValue(zero(sort.parameters[1]))
    raise ClaimError("elements of declared sorts have no literals")
