r"""Amounts of money with a leading sign: `$5`, `-€3`, `$15 per hour`, `\$15/\text{hour}`."""

from __future__ import annotations

from verifiers.answers.grammar.nodes import Negation
from verifiers.answers.grammar.reader import Reader
from verifiers.answers.grammar.reading.quantities import is_unit, spread, unit
from verifiers.answers.grammar.values import Quantity, Value

SIGNS = ("$", "€", "£", "¥")


def money(reader: Reader) -> Value:
    """Reads a currency sign, its number, and the unit it is paid for."""
    negative = reader.accept("-")
    sign = reader.take().text
    if sign not in SIGNS:
        raise reader.error("a unit without a number")
    restore = reader.saved()
    node = reader.atom() if reader.token.kind == "number" else None
    spread(reader)
    paid = (reader.at("/") or reader.token.text == "per") and reader.peek().text in reader.context.units
    if node is None or not paid:
        restore()
        node = reader.sum()
        if is_unit(reader, reader.token):
            raise reader.error("two units")
    else:
        reader.take()
    below = [(name, -power) for name, power in unit(reader)] if paid else []
    return Quantity(Negation(node) if negative else node, ((sign, 1), *below))
