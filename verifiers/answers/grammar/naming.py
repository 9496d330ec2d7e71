"""Names in answers: which word is a symbol, a constant, a function or a unit; what a function takes.

Every single letter is a symbol, unless it is `e`, `i` or declared otherwise; a letter of `f`, `g`, `h` before a bracket
is a function that nothing is known about. Words are products of their letters only where people write such.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from verifiers.answers.grammar.nodes import (
    Call,
    Constant,
    Expression,
    Negation,
    Number,
    Power,
    Product,
    Symbol,
)
from verifiers.answers.grammar.parser import (
    NOT_VALUES,
    ExpressionParser,
    product_of,
)
from verifiers.answers.grammar.tokens import Token
from verifiers.answers.grammar.vocabulary import (
    BEFORE,
    CALLED,
    CUSTOMARY,
    EXTENDED,
    GREEK_NAMES,
    INVERSES,
    WIDE_BARE,
    WORD_PARTS,
)

PI = Constant("pi")
CONSTANTS: dict[str, Constant] = {"pi": PI, "e": Constant("e"), "i": Constant("i")}
NOUN = re.compile("[a-z]{4,20}")
RATE = re.compile("d([A-Za-z])")


@dataclass(frozen=True, slots=True)
class Context:
    """What is known before reading: names that are declared, symbols of the expected answer, spellings of units."""

    variables: frozenset[str] = frozenset()
    familiar: frozenset[str] = frozenset()
    units: frozenset[str] = frozenset()
    wants_unit: bool = False
    nouns: bool = False
    """Whether any noun may stand where a unit stands."""


class Naming(ExpressionParser):
    def __init__(self, tokens: list[Token], context: Context) -> None:
        super().__init__(tokens, context.variables | context.familiar)
        self.context = context
        self.signs: dict[str, bool] | None = None
        """How `\\pm` is read now: upper or lower sign. None where it may not occur."""
        self.both_signs = 0
        self.inside_determinant = False
        self.called = ""
        """A letter that is defined here as a function."""

    def take(self) -> Token:
        if self.token.kind == "end":
            raise self.error("it ends too early")
        return super().take()

    # -- names

    def is_variable(self, name: str) -> bool:
        if name in self.variables:
            return True
        if name in CONSTANTS:
            return False
        return len(name) == 1 or name in GREEK_NAMES

    def is_letter(self, letter: str) -> bool:
        return self.is_variable(letter) or letter in CONSTANTS

    def is_function(self, word: str) -> bool:
        return word in EXTENDED and word not in self.variables

    def is_unit(self, token: Token) -> bool:
        """Whether a token that follows a value is the beginning of its unit, and not a factor."""
        if token.kind in ("unit", "text") or (token.kind == "word" and token.text in BEFORE):
            return True
        if self.is_noun(token):
            return True
        if token.kind != "word" or token.text not in self.context.units or token.text in self.variables:
            return False
        if len(token.text) > 1 or self.context.wants_unit:
            return not self.is_function(token.text) or self.tokens[self.index + 1].text not in ("(", "{")
        return not token.glued and self.ends_unit()

    def ends_unit(self) -> bool:
        """Whether the letter here, behind a value and a blank, is a unit. Expressions alone have none."""
        return False

    def is_unit_fraction(self) -> bool:
        """Whether the fraction here, behind a value, is a unit. Expressions alone have none."""
        return False

    def is_noun(self, token: Token) -> bool:
        """`5 apples`: one word behind a number and before the end, where nothing says that it is no unit."""
        if not self.context.nouns or token.kind not in ("word", "text") or not NOUN.fullmatch(token.text):
            return False
        last = self.tokens[self.index + 1].kind == "end" and self.tokens[self.index - 1].kind == "number"
        return last and not (token.text in GREEK_NAMES or token.text in self.variables or self.is_function(token.text))

    # -- words

    def word(self) -> Expression:
        name = self.take().text
        if name in self.variables:
            return self.subscripted(name)
        if name in NOT_VALUES:
            raise self.error(f"{name!r} is not a value")
        if name in EXTENDED:
            return self.function(name)
        if name in CONSTANTS:
            return CONSTANTS[name]
        if len(name) == 1 or name in GREEK_NAMES:
            return self.subscripted(name)
        if RATE.fullmatch(name) and self.token.text == "/" and RATE.fullmatch(self.tokens[self.index + 1].text):
            self.index += 2
            return Symbol(f"{name}/{self.tokens[self.index - 1].text}")
        if (
            (len(name) > 3 and not (CUSTOMARY.fullmatch(name) or self.variables.issuperset(name)))
            or RATE.fullmatch(name)
            or WORD_PARTS.search(name)
        ):
            raise self.error(f"{name[:20]!r} is not known here")
        # `xy` is x times y: as TeX has it, a power behind it belongs to y alone.
        self.tokens[self.index - 1 : self.index] = [Token("word", letter) for letter in name]
        return self.nested(self.word_again)

    def subscripted(self, name: str) -> Expression:
        """A symbol with what is written at its foot and its primes, or a call of a function that is not known."""
        if self.at("_"):
            self.take()
            name += "_" + self.foot()
        primes = 0
        while self.at("'"):
            self.take()
            primes += 1
        name += "'" * primes
        if self.at("^") and name in CALLED and self.inverts():
            name += "^-1"
            primes = 1
        if self.at("(") and (primes or name.partition("_")[0] in CALLED or name == self.called):
            self.take()
            outer, self.bars = self.bars, 0
            arguments = [self.nested(self.sum)]
            while self.at(","):
                self.take()
                arguments.append(self.nested(self.sum))
            self.expect(")")
            self.bars = outer
            return Call(name, tuple(arguments))
        return Symbol(name)

    def inverts(self) -> bool:
        """Skips the sign of an inverse function, as in `f^{-1}(x)`, where it stands before a bracket."""
        texts = [token.text for token in self.tokens[self.index : self.index + 6]]
        for sign in (["^", "{", "-", "1", "}"], ["^", "-", "1"]):
            if texts[: len(sign)] == sign and texts[len(sign) : len(sign) + 1] == ["("]:
                self.index += len(sign)
                return True
        return False

    def foot(self) -> str:
        """A subscript as text: digits, letters and simple arithmetic."""
        if not self.at("{"):
            token = self.take()
            if token.kind not in ("number", "word", "symbol", "text"):
                raise self.error("a subscript that cannot be read")
            return token.text
        self.take()
        parts: list[str] = []
        while not self.at("}"):
            token = self.take()
            if token.kind == "end" or (token.kind == "mark" and token.text not in ("+", "-", ",", "*", "(", ")")):
                raise self.error("a subscript that cannot be read")
            parts.append(token.text)
        self.take()
        if not parts:
            raise self.error("an empty subscript")
        return "".join(parts)

    def function(self, written: str) -> Expression:
        name, fewest, most = EXTENDED[written]
        base: Expression | None = None
        power: Expression | None = None
        while self.at("_", "^"):
            if self.take().text == "_":
                if written != "log" or base is not None:
                    raise self.error(f"{written} has no base")
                following = self.tokens[self.index + 1] if self.token.kind == "number" else self.token
                whole = following.text == "(" or not following.glued
                base = Number(self.take().value) if self.token.kind == "number" and whole else self.argument()
            elif power is not None:
                raise self.error("two powers of a function")
            else:
                power = self.braced() if self.at("{") else self.nested(self.signed)
        arguments = self.arguments(written)
        if not fewest <= len(arguments) <= (1 if base else most):
            raise self.error(f"{written} does not take {len(arguments)} arguments")
        if base is not None:
            arguments.append(base)
        if power == Negation(Number(Fraction(1))):
            if name not in INVERSES:
                raise self.error(f"{written} to the power of -1 is ambiguous: write the inverse or the quotient")
            return Call(INVERSES[name], tuple(arguments))
        node: Expression
        if name == "cis":
            node = Power(CONSTANTS["e"], Product((CONSTANTS["i"], arguments[0])))
        elif name == "lg":
            node = Call("log", (arguments[0], Number(Fraction(10))))
        else:
            node = Call("ln" if name == "log" and len(arguments) == 1 else name, tuple(arguments))
        if power is None:
            return node
        if written not in WIDE_BARE:
            raise self.error(f"a power of {written} without brackets")
        if not (isinstance(power, Symbol) or (isinstance(power, Number) and power.value > 0)):
            raise self.error(f"a power of {written} without brackets is ambiguous here")
        return Power(node, power)

    def arguments(self, written: str) -> list[Expression]:
        closing = (
            {"(": ")", "[": "]", "\\{": "\\}", "{": "}"}.get(self.token.text) if self.token.kind == "mark" else None
        )
        if closing is not None and (closing != "\\}" or written in ("min", "max", "gcd", "lcm")):
            self.take()
            outer, self.bars = self.bars, 0
            arguments = [self.nested(self.sum)]
            while self.at(","):
                self.take()
                arguments.append(self.nested(self.sum))
            self.expect(closing)
            self.bars = outer
            return arguments
        if written in WIDE_BARE:
            return [self.nested(self.bare_argument)]
        if written == "sqrt" and self.token.kind in ("number", "word"):
            return [self.nested(self.atom)]
        raise self.error(f"{written} needs brackets")

    def bare_argument(self) -> Expression:
        """`2x` of `sin 2x`; a bracket after it, or a slash that could belong to either, is refused."""
        factors: list[Expression] = []
        while self.starts_factor() and not (self.token.kind == "word" and self.is_function(self.token.text)):
            if self.at("("):
                raise self.error("how far the function reaches is ambiguous: use brackets")
            if factors and self.token.kind == "number" and not self.backward_product(self.tokens[self.index - 1]):
                raise self.error("a number directly after another value: write the sign between them")
            factors.append(self.power())
        if not factors:
            raise self.error("a function without an argument")
        following = self.tokens[self.index + 1] if self.at("/") else None
        if following is not None and not (following.kind == "word" and self.is_function(following.text)):
            raise self.error("how far the function reaches is ambiguous: use brackets")
        return product_of(factors)
