"""Conditions: comparisons of arithmetic, joined by `and`, `or`, `not`; `1 < x <= 5` means both.

`%` and `//` are the remainder and the quotient of division rounding down, as in Python. A single `=` is
refused: it does not say the same to everybody.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.nodes import And, Comparison, Condition, Expression, Not, Or, Relation
from verifiers.answers.grammar.parser import ExpressionParser
from verifiers.answers.grammar.tokens import tokenize

RELATIONS: dict[str, Relation] = {relation: relation for relation in get_args(Relation)}


class PredicateParser(ExpressionParser):
    def __init__(self, text: str, variables: Collection[str]) -> None:
        super().__init__(tokenize(text), variables, modular=True)

    def condition(self) -> Condition:
        found = self.either()
        if self.token.kind != "end":
            raise self.error(self.unexpected())
        return found

    def unexpected(self) -> str:
        if self.at("="):
            return "a single '=': write '==' to compare"
        return f"cannot read on at {self.token.text[:20]!r}"

    def either(self) -> Condition:
        parts = [self.both()]
        while self.at("or"):
            self.take()
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def both(self) -> Condition:
        parts = [self.negated()]
        while self.at("and"):
            self.take()
            parts.append(self.negated())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def negated(self) -> Condition:
        if self.at("not"):
            self.take()
            return Not(self.nested(self.negated))
        return self.compared()

    def compared(self) -> Condition:
        """A comparison, or a condition in brackets. Arithmetic is tried first: it never tries twice itself."""
        start, bars, depth = self.index, self.bars, self.depth
        try:
            return self.comparison()
        except TooLargeError:
            raise
        except GrammarError as first:
            self.index, self.bars, self.depth = start, bars, depth
            if not self.at("("):
                raise
            try:
                self.take()
                inner = self.nested(self.either)
                self.expect(")")
            except GrammarError as second:
                raise (first if first.position >= second.position else second) from None
            return inner

    def comparison(self) -> Comparison:
        operands: list[Expression] = [self.sum()]
        relations: list[Relation] = []
        while self.token.kind == "mark" and self.token.text in RELATIONS:
            relations.append(RELATIONS[self.take().text])
            operands.append(self.sum())
        if not relations:
            raise self.error(self.unexpected() if self.token.kind != "end" else "a value where a comparison is needed")
        return Comparison(tuple(operands), tuple(relations))


def parse_predicate(text: str, variable: str) -> Condition:
    """The condition of a whole text. Raises GrammarError, and nothing else, for a text that is not in the language."""
    return PredicateParser(text, {variable}).condition()
