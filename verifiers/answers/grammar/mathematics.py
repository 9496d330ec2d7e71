"""Expressions as answers write them: the language of `parser`, and more of LaTeX.

Read here and not there: every single letter as a symbol (unless it is `e`, `i` or a function), Greek and decorated
letters, subscripts and primes as parts of a symbol's name, degrees, `\\sin^{-1}` (the inverse, never 1/sin), `\\lg`
(base 10), mixed numbers with a blank, unknown functions such as `f(2)` as a call that nothing is known about, definite
integrals, sums, products and limits, determinants. Still refused: `x/2y`, `\\sin x (x+1)`, `\\sin x/2`, `6 7`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from verifiers.answers.grammar.calculus import bound
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.matrices import determinant
from verifiers.answers.grammar.nodes import (
    Call,
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
from verifiers.answers.grammar.parser import (
    AMBIGUOUS,
    NOT_VALUES,
    ExpressionParser,
    mixed_number,
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
    LARGE_NUMBERS,
    WIDE_BARE,
    WORD_PARTS,
)

PI = Constant("pi")
CONSTANTS: dict[str, Constant] = {"pi": PI, "e": Constant("e"), "i": Constant("i")}
DEGREE = Quotient(PI, Number(Fraction(180)))
"""This very object stands for a degree sign, so that a reader of quantities can tell it from a written pi/180."""

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


class Mathematics(ExpressionParser):
    def __init__(self, tokens: list[Token], context: Context) -> None:
        super().__init__(tokens, context.variables | context.familiar)
        self.context = context
        self.signs: dict[str, bool] | None = None
        """How `\\pm` is read now: upper or lower sign. None where it may not occur."""
        self.both_signs = 0
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
        return not token.glued and self.tokens[self.index - 1].kind == "number" and self.ends_unit()

    def ends_unit(self) -> bool:
        """Whether the letter here, behind a number and a blank, is a unit. Expressions alone have none."""
        return False

    def is_noun(self, token: Token) -> bool:
        """`5 apples`: one word behind a number and before the end, where nothing says that it is no unit."""
        if not self.context.nouns or token.kind not in ("word", "text") or not NOUN.fullmatch(token.text):
            return False
        last = self.tokens[self.index + 1].kind == "end" and self.tokens[self.index - 1].kind == "number"
        return last and not (token.text in GREEK_NAMES or token.text in self.variables or self.is_function(token.text))

    # -- factors

    def term(self) -> Expression:
        if self.at("\\pm", "\\mp"):
            return self.signed_both()
        node = super().term()
        while self.starts_factor():
            # Only after a fraction such as `3/4` and a blank: anything else would have been read on.
            node = Product((node, super().term()))
        return node

    def sum(self) -> Expression:
        node = super().sum()
        if not self.at("\\pm", "\\mp"):
            return node
        terms: list[Expression] = list(node.terms) if isinstance(node, Sum) else [node]
        while self.at("\\pm", "\\mp", "+", "-"):
            if self.at("\\pm", "\\mp"):
                terms.append(self.signed_both())
            else:
                negative = self.take().text == "-"
                term = super().term()
                terms.append(Negation(term) if negative else term)
        return Sum(tuple(terms))

    def signed_both(self) -> Expression:
        upper = self.take().text == "\\pm"
        if self.signs is None:
            raise self.error("both signs at once")
        self.both_signs += 1
        positive = self.signs["upper"] == upper
        term = super().term()
        return term if positive else Negation(term)

    def run(self) -> tuple[Expression, int]:
        begin = self.index
        factors = [self.signed()]
        while self.starts_factor():
            if self.index == begin + 1 and self.after_fraction(begin):
                break
            before, token = self.tokens[self.index - 1], self.token
            if token.kind == "number":
                mixed = self.plain_mixed(factors, before)
                if mixed is not None:
                    factors = [mixed]
                    continue
                if len(factors) > 1 or not self.backward_product(before):
                    raise self.error("a number directly after another value: write the sign between them")
                factors.append(self.power())
                if self.starts_factor():
                    raise self.error("a number between two letters: a power or a factor")
                break
            start = self.index
            factor = self.power()
            fraction = mixed_number(factors[-1], factor) if before.integer and token.text == "\\frac" else None
            if fraction is None:
                factors.append(factor)
            elif len(factors) == 1 and fraction is not AMBIGUOUS:
                factors = [fraction]
            else:
                raise GrammarError("a number directly before a fraction of numbers is ambiguous", position=start)
        return product_of(factors), len(factors)

    def after_fraction(self, begin: int) -> bool:
        """`3/4 x` and `3/4 \\pi`: after digits over digits and a blank the fraction has ended."""
        if begin < 2 or self.token.glued:
            return False
        above, slash, below = self.tokens[begin - 2 : begin + 1]
        return above.integer and slash.text == "/" and slash.glued and below.integer and below.glued

    def plain_mixed(self, factors: list[Expression], before: Token) -> Expression | None:
        """`1 1/2`, digits and a blank before a proper fraction of digits; None where it is something else."""
        following = self.tokens[self.index : self.index + 4]
        if len(following) < 4:
            return None
        first, slash, second, after = following
        if not (before.integer and first.integer and not first.glued and slash.text == "/" and slash.glued):
            return None
        whole = factors[0]
        inside = whole.of if isinstance(whole, Negation) else whole
        plain = isinstance(inside, Number) and inside.value.denominator == 1
        if not (second.kind == "number" and second.integer and second.glued) or len(factors) > 1 or not plain:
            return None
        if not 0 < first.value < second.value or after.text in ("^", "!", "/", "*", "\\frac"):
            return None
        self.index += 3
        return mixed_number(whole, Quotient(Number(first.value), Number(second.value)))

    def starts_factor(self) -> bool:
        token = self.token
        match token.kind:
            case "number" | "symbol" | "based":
                return True
            case "word":
                return not self.is_unit(token)
            case "text":
                name = token.text
                is_letter = name in CONSTANTS or (len(name) == 1 and name.isalpha() and name not in self.context.units)
                return is_letter or self.is_function(name)
            case "mark":
                return self.bars == 0 if token.text == "|" else token.text in STARTS
        return False

    def postfix(self) -> Expression:
        node = super().postfix()
        if self.at("\\degree"):
            self.take()
            return Product((node, DEGREE))
        return node

    def atom(self) -> Expression:
        token = self.token
        if token.kind == "number":
            self.index += 1
            large = LARGE_NUMBERS.get(self.token.text)
            if large is not None and self.token.text not in self.variables:
                return Number(token.value * large, f"{token.text} {self.take().text}")
            return Number(token.value, "" if token.integer else token.text)
        if token.kind == "symbol":
            self.index += 1
            return self.subscripted(token.text)
        if token.kind == "text":
            return self.upright()
        if token.kind == "mark":
            match token.text:
                case "\\surd":
                    return self.unbraced_root()
                case "\\int" | "\\sum" | "\\prod" | "\\lim":
                    return bound(self)
                case "\\frac" if (rate := self.rate()) is not None:
                    return rate
                case "\\infty":
                    raise self.error("infinity is not a number to compute with")
                case "\\begin{vmatrix}":
                    return determinant(self)
                case "{":
                    return self.braced()
        return super().atom()

    def argument(self) -> Expression:
        token = self.token
        if token.kind in ("symbol", "text") or self.at("\\frac", "\\sqrt"):
            return self.nested(self.atom)
        if (
            token.kind == "word"
            and len(token.text) > 1
            and not (self.is_variable(token.text) or token.text in CONSTANTS)
        ):
            if self.is_function(token.text):
                raise self.error("expected an argument in braces")
            first, rest = token.text[0], token.text[1:]
            self.tokens[self.index : self.index + 1] = [Token("word", first, glued=token.glued), Token("word", rest)]
        return super().argument()

    def upright(self) -> Expression:
        """A symbol in upright letters, such as `\\mathrm{e}`; text is not mathematics."""
        name = self.token.text
        if name in CONSTANTS and name not in self.variables:
            self.index += 1
            return CONSTANTS[name]
        if self.is_function(name):
            self.tokens[self.index] = Token("word", name, glued=self.token.glued)
            return self.word()
        if re.fullmatch("[A-Za-z]", name) or name in self.variables:
            self.index += 1
            return self.subscripted(name)
        raise self.error(f"the text {name[:20]!r} is not mathematics")

    def unbraced_root(self) -> Expression:
        """`√2`, `√12`, `√(x+1)`: a sign that takes the next number, letter or bracket."""
        self.take()
        degree: Expression | None = None
        if self.at("["):
            self.take()
            degree = self.nested(self.sum)
            self.expect("]")
        if self.token.kind not in ("number", "word", "symbol") and not self.at("(", "{", "\\frac", "\\surd"):
            raise self.error("a root of nothing")
        under = self.braced() if self.at("{") else self.nested(self.atom)
        return Call("sqrt", (under,)) if degree is None else Call("root", (under, degree))

    def rate(self) -> Expression | None:
        """`\\frac{dy}{dx}`, one symbol in which no d cancels, or `\\frac{d}{dx} x^3`, a derivative; else None."""
        texts = [token.text for token in self.tokens[self.index : self.index + 7]]
        if len(texts) < 7 or texts[1] != "{" or texts[4] != "{" or not texts[3] == texts[6] == "}":
            return None
        below = RATE.fullmatch(texts[5])
        if below is None or "d" in self.variables:
            return None
        if texts[2] == "d":
            self.index += 7
            return Call("derivative", (self.nested(self.term), Symbol(below[1])))
        if not RATE.fullmatch(texts[2]):
            return None
        self.index += 7
        return Symbol(f"{texts[2]}/{texts[5]}")

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
        if name == "lg":
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


STARTS = frozenset(
    {"(", "\\frac", "\\sqrt", "\\surd", "\\binom", "\\lfloor", "\\lceil", "|open", "\\int", "\\sum", "\\prod", "\\lim",
     "\\begin{vmatrix}"}
)  # fmt: skip
