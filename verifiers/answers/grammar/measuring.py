"""Numbers with what stands behind or before them: units, degrees, money, the base of digits.

A unit may be a fraction: `25 \\frac{\\text{m}}{\\text{s}}`. Upright letters there are always units; letters in italics
are, where a unit is expected, where one of them is a unit's name of several letters, and in `\\frac{m}{s}` and
`\\frac{m}{s^2}` behind a number and a blank. Everything else is a product of symbols.
"""

from __future__ import annotations

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.mathematics import DEGREE, Mathematics
from verifiers.answers.grammar.nodes import Expression, Negation, Number, Product
from verifiers.answers.grammar.unit_names import Unit, parts, unit
from verifiers.answers.grammar.vocabulary import SCALES
from verifiers.answers.values import BaseNumber, Quantity, Scalar, Value

COMMON_UNITS = frozenset("mgshLNJWVAK")
"""Letters that are units behind a number and a blank; others only where a unit is expected."""
SEPARATORS = frozenset({",", ";", "and", "or", ")", "]", "\\}", "}", "\\approx", "=", "!=", "<", "<=", ">", ">="})
RATES: tuple[Unit, ...] = ((("m", 1), ("s", -1)), (("m", 1), ("s", -2)))
"""Fractions of single letters that are units behind a number and a blank."""


class Measuring(Mathematics):
    def measured(self, node: Expression) -> Value:
        inside = node.of if isinstance(node, Negation) else node
        if isinstance(inside, Product) and inside.factors[-1] is DEGREE:
            of = inside.factors[0]
            name = "degree"
            if self.token.kind in ("word", "text") and self.token.text in SCALES:
                name = SCALES[self.take().text]
            return Quantity(Negation(of) if isinstance(node, Negation) else of, ((name, 1),))
        if self.is_unit(self.token) or self.is_unit_fraction():
            read = unit(self, self.context.units)
            if isinstance(node, Number) and node.value.denominator == 1:
                node = parts(self, node.value, read) or node
            return Quantity(node, read)
        return Scalar(node)

    def ends_unit(self) -> bool:
        """Whether a common letter begins a unit, and nothing but more of it comes before the end of the item.

        `s^2` alone is a square of a symbol, `m^2` an area; `m g h` is a product, `m/s` and `N m` are units."""
        before = self.tokens[self.index - 1]
        if self.token.text not in COMMON_UNITS or not (before.kind == "number" or before.text in (")", "}")):
            return False
        start, kept, depth = self.index, list(self.tokens), self.depth
        try:
            found = unit(self, self.context.units)
        except GrammarError:
            return False
        else:
            (name, power), *others = found
            parted = self.token.kind == "number" and self.tokens[self.index + 1].text in self.context.units
            if self.token.kind != "end" and self.token.text not in SEPARATORS and not parted:
                return False
            if others:
                return any(len(atom) > 1 or exponent < 0 for atom, exponent in found) or found == (("N", 1), ("m", 1))
            return (before.kind == "number" and power == 1) or (name == "m" and power in (2, 3))
        finally:
            self.index, self.tokens, self.depth = start, kept, depth

    def is_unit_fraction(self) -> bool:
        """Whether the fraction here, behind a value, is a unit: `\\frac{\\text{km}}{\\text{h}}`."""
        if self.index == 0 or not self.at("\\frac") or self.tokens[self.index + 1].text != "{":
            return False
        first = self.tokens[self.index + 2]
        if not (first.kind == "text" or (first.kind == "word" and first.text in self.context.units)):
            return False
        before = self.tokens[self.index - 1]
        if before.kind != "number" and before.text not in (")", "}"):
            return False
        start, kept, depth = self.index, list(self.tokens), self.depth
        parted = not self.token.glued
        try:
            found = unit(self, self.context.units)
        except GrammarError:
            return False
        else:
            written = kept[start : self.index - len(self.tokens) + len(kept)]
            if self.token.kind != "end" and self.token.text not in SEPARATORS:
                return False
            if any(token.kind == "word" and token.text in self.variables for token in written):
                return False
            if self.context.wants_unit or all(token.kind in ("text", "mark", "number") for token in written):
                return True
            return any(len(name) > 1 for name, _ in found) or (parted and found in RATES)
        finally:
            self.index, self.tokens, self.depth = start, kept, depth

    def money(self) -> Value:
        negative = self.at("-")
        if negative:
            self.take()
        sign = self.take().text
        if sign not in ("$", "€", "£", "¥"):
            raise self.error("a unit without a number")
        node = self.sum()
        if self.is_unit(self.token):
            raise self.error("two units")
        return Quantity(Negation(node) if negative else node, ((sign, 1),))

    def base_number(self) -> Value:
        token = self.take()
        return BaseNumber(token.text, int(token.value))
