"""Answers that are more than one expression: tuples, sets, intervals, relations, matrices, quantities, lists of them.

What a pair of round brackets means is settled by what stands around it (infinity, a union, `x \\in`), then by the
`Hint`, and else it is a point. Square brackets around two numbers are an interval, around any other count a tuple.
"""

from __future__ import annotations

from verifiers.answers.grammar.brackets import OPERATIONS, Hint, has_items, number_set, tuple_or_interval
from verifiers.answers.grammar.congruences import congruence
from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.joining import SETS, approximated, as_set, builder, is_name, joined, named_points
from verifiers.answers.grammar.matrices import rows
from verifiers.answers.grammar.measuring import Measuring
from verifiers.answers.grammar.naming import Context
from verifiers.answers.grammar.nodes import (
    Product,
    Symbol,
)
from verifiers.answers.grammar.piecewise import cases
from verifiers.answers.grammar.progressions import MAX_TERMS, between
from verifiers.answers.grammar.relations import RELATIONS, defines_function, ratio, related
from verifiers.answers.grammar.systems import systems
from verifiers.answers.grammar.tokens import Token
from verifiers.answers.values import (
    BaseNumber,
    Builder,
    FiniteSet,
    Infinity,
    Matrix,
    Named,
    Relation,
    Scalar,
    SetOperation,
    Tuple,
    Value,
)

MAX_ITEMS = 500
MAX_REREADS = 64
"""Of items with `\\pm`; sets of tuples of sets would double the work at every level."""
MAX_SCALED = 20_000
"""Signs of a factor times the entries of the matrix that it multiplies."""

ROWS = Hint("tuple", "tuple")


class Structures(Measuring):
    def __init__(self, tokens: list[Token], context: Context, hint: Hint) -> None:
        super().__init__(tokens, context)
        self.hint = hint
        self.rereads = 0
        self.dotted = 0
        """Items that dots stood for."""
        self.marked = any(token.text in ("\\pm", "\\mp") for token in tokens)

    # -- lists

    def answer(self) -> Value:
        found = self.listed()
        if self.at("\\approx"):
            self.take()
            found = approximated(found, self.operand(), self.error)
        if self.token.kind != "end":
            raise self.error(f"cannot read on at {self.token.text[:20]!r}")
        return found

    def listed(self) -> Value:
        """Items up to a sign or the end, joined as one value."""
        items = self.items()
        signs = [""] * len(items)
        while self.at(",", ";", "and", "or", "\\cup"):
            sets = self.at("\\cup")
            sign = self.joiner()
            if self.at("\\dots"):
                self.run_on(items)
                signs += [","] * (len(items) - len(signs))
                continue
            more = self.items()
            if sets and not (isinstance(items[-1], Relation) and all(isinstance(item, Relation) for item in more)):
                raise self.error("a union of things that are no sets")
            items.extend(more)
            signs += [sign, *([""] * (len(more) - 1))]
            if len(items) - self.dotted > MAX_ITEMS:
                raise TooLargeError(f"more than {MAX_ITEMS} items")
        return systems(items, signs) or joined(items, {sign for sign in signs if sign}, self.error)

    def joiner(self) -> str:
        sign = self.take().text
        if sign == "\\cup":
            return "or"
        if sign in (",", ";") and self.at("and", "or"):
            sign = self.take().text
        return sign

    def run_on(self, items: list[Value]) -> None:
        """Adds what dots stand for, and the item behind them."""
        self.take()
        if not self.at(",", ";"):
            raise self.error("dots without an end")
        self.take()
        more = between(items, self.operand())
        self.dotted += len(more)
        if self.dotted > MAX_TERMS:
            raise TooLargeError(f"dots for more than {MAX_TERMS} numbers")
        items.extend(more)
        if self.at(",", ";"):
            raise self.error("an item behind the end of dots")

    def items(self) -> list[Value]:
        """One item, or both of what `\\pm` makes of it."""
        if not self.marked:
            return [self.item()]
        start, outer, count = self.index, self.signs, self.both_signs
        kept = list(self.tokens)
        self.signs, self.both_signs = {"upper": True}, 0
        first = self.item()
        found = [first]
        if self.both_signs:
            if self.both_signs > 1:
                raise self.error("several signs with two readings each")
            self.index, self.tokens = start, kept
            self.signs, self.rereads = {"upper": False}, self.rereads + 1
            if self.rereads > MAX_REREADS:
                raise TooLargeError(f"more than {MAX_REREADS} signs with two readings")
            found.append(self.item())
        self.signs, self.both_signs = outer, count
        return found

    def item(self) -> Value:
        if defines_function(self):
            self.called = self.token.text
        first = self.operand()
        if self.at("\\in"):
            self.take()
            if isinstance(first, Tuple) and is_name(first):
                return named_points(first, self.operand(within=True), self.error)
            if not (isinstance(first, Scalar) and isinstance(first.of, Symbol)):
                raise self.error("only a symbol can be a member of a set here")
            return Builder(first.of.name, as_set(self.operand(within=True), self.error), None)
        if self.token.kind == "mark":
            if self.token.text in RELATIONS:
                return related(self, first)
            if self.token.text == "\\equiv":
                return congruence(self, first)
            if self.token.text == ":" and self.depth == 0:
                return ratio(self, first)
        return first

    # -- one value

    def operand(self, *, within: bool = False) -> Value:
        """A value, or sets joined by one kind of operation. `within`: a set is to follow, so braces are one."""
        first = self.primary(within)
        if isinstance(first, SETS) and self.at("-"):
            self.take()
            return SetOperation("difference", (first, as_set(self.primary(within=True), self.error)))
        if not self.at(*OPERATIONS) or (isinstance(first, Scalar | Infinity) and self.at("\\cup")):
            return first
        sign = self.token.text
        parts = [as_set(first, self.error)]
        while self.at(sign):
            self.take()
            parts.append(as_set(self.primary(within=True), self.error))
        if self.at(*OPERATIONS):
            raise self.error("different operations on sets without brackets")
        return SetOperation(OPERATIONS[sign], tuple(parts))

    def primary(self, within: bool = False) -> Value:
        token = self.token
        if token.kind == "based":
            return self.base_number()
        if token.kind == "unit" or (self.at("-") and self.tokens[self.index + 1].kind == "unit"):
            return self.money()
        if token.kind == "mark":
            text = token.text
            if text in ("(", "[", "\\langle", "{") and has_items(self):
                return self.bracketed_items()
            if text in ("[", "]"):
                return self.bracketed_items()
            if text == "(":
                return self.round_bracket()
            if text == "\\{" or (
                text == "{" and (within or self.hint.braces or self.tokens[self.index + 1].text == "}")
            ):
                return self.braces()
            if text == "\\emptyset":
                self.take()
                return FiniteSet(())
            if text.startswith("\\mathbb"):
                return number_set(self)
            if text == "\\begin{cases}":
                return cases(self)
            if text.startswith("\\begin{") and text != "\\begin{vmatrix}":
                return Matrix(rows(self))
        infinity = self.infinity()
        return infinity if infinity is not None else self.scalar()

    def infinity(self) -> Infinity | None:
        signed = self.at("+", "-")
        token = self.tokens[self.index + 1] if signed else self.token
        if token.text not in ("\\infty", "infinity", "oo", "inf", "Infinity") or token.text in self.variables:
            return None
        negative = self.at("-")
        self.index += 2 if signed else 1
        return Infinity(-1 if negative else 1)

    def scalar(self) -> Value:
        start = self.index
        node = self.sum()
        if (
            self.token.kind == "mark"
            and self.token.text.startswith("\\begin{")
            and self.token.text not in ("\\begin{vmatrix}", "\\begin{cases}")
        ):
            length = self.index - start
            read = rows(self)
            if length * len(read) * len(read[0]) > MAX_SCALED:
                raise TooLargeError("a long factor of a large matrix")
            return Matrix(tuple(tuple(Product((node, entry)) for entry in row) for row in read))
        return self.measured(node)

    def round_bracket(self) -> Value:
        """An expression that begins with a bracket, or brackets around a set; digits with their base."""
        start, kept = self.index, list(self.tokens)
        state = (self.depth, self.bars, self.signs, self.both_signs, self.hint)
        inner, closing, foot = (
            self.tokens[start + step].text if start + step < len(kept) else "" for step in (1, 2, 3)
        )
        if closing == ")" and foot == "_" and inner.isdigit():
            base = kept[start + 4 : start + 7]
            braced = base[0].text == "{" and len(base) == 3 and base[2].text == "}"
            number = base[1] if braced else base[0]
            if number.integer and 2 <= number.value <= 36 and all(int(digit) < number.value for digit in inner):
                self.index = start + (7 if braced else 5)
                return BaseNumber(inner, int(number.value))
        try:
            return self.scalar()
        except TooLargeError:
            raise
        except GrammarError as first:
            self.index, self.tokens = start, kept
            self.depth, self.bars, self.signs, self.both_signs, self.hint = state
            try:
                self.take()
                inside = self.nested(self.operand)
                self.expect(")")
            except GrammarError as second:
                raise (first if first.position >= second.position else second) from None
            if not isinstance(inside, (*SETS, Tuple, Matrix)):
                raise first
            return inside

    # -- brackets

    def bracketed_items(self) -> Value:
        opening = self.take().text
        if opening == "{":
            return self.members("}")
        outer = self.hint
        if opening == "[" and self.at("["):
            self.hint = ROWS
        items = self.elements()
        self.hint = outer
        closing = self.take().text
        if opening == "\\langle":
            if closing != "\\rangle":
                raise self.error("a bracket that is not closed")
            return Tuple(tuple(items))
        if closing not in (")", "]", "["):
            self.index -= 1
            raise self.error("a bracket that is not closed")
        return tuple_or_interval(self.hint, opening, items, closing, self.error)

    def elements(self) -> list[Value]:
        outer, self.bars = self.bars, 0
        items: list[Value] = [self.nested(self.operand)]
        while self.at(",", ";"):
            self.take()
            if self.at("\\dots"):
                self.run_on(items)
                break
            items.append(self.nested(self.operand))
            if len(items) > MAX_ITEMS:
                raise TooLargeError(f"more than {MAX_ITEMS} items")
        self.bars = outer
        return items

    def braces(self) -> Value:
        return self.members("\\}" if self.take().text == "\\{" else "}")

    def members(self, closing: str) -> Value:
        """A finite set, or all symbols that fulfil a condition."""
        if self.at(closing):
            self.take()
            return FiniteSet(())
        outer, self.bars = self.bars, 1
        found = self.nested(lambda: self.inside_braces(closing))
        self.bars = outer
        self.expect(closing)
        return found

    def inside_braces(self, closing: str) -> Value:
        items = self.items()
        while self.at(",", ";", "and"):
            self.joiner()
            if self.at("\\dots"):
                self.run_on(items)
                break
            items.extend(self.items())
            if len(items) > MAX_ITEMS:
                raise TooLargeError(f"more than {MAX_ITEMS} items")
        if self.at("|", "\\mid", ":"):
            self.take()
            self.bars = 0
            return builder(items, self.listed(), self.error)
        if any(isinstance(item, Relation | Named) for item in items):
            raise self.error("a set of equations")
        return FiniteSet(tuple(items))
