"""Expressions as answers write them: the language of `parser`, and more of LaTeX.

Read here and not there: every single letter as a symbol (unless it is `e`, `i` or a function), Greek and decorated
letters, subscripts and primes as parts of a symbol's name, degrees, `\\sin^{-1}` (the inverse, never 1/sin), `\\lg`
(base 10), mixed numbers with a blank, unknown functions such as `f(2)` as a call that nothing is known about, definite
integrals, sums, products and limits, determinants. Still refused: `x/2y`, `\\sin x (x+1)`, `\\sin x/2`, `6 7`.
"""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

from verifiers.answers.grammar.calculus import bound
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.matrices import determinant
from verifiers.answers.grammar.naming import CONSTANTS, PI, RATE, Naming
from verifiers.answers.grammar.nodes import (
    Call,
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
    mixed_number,
    product_of,
)
from verifiers.answers.grammar.tokens import Token
from verifiers.answers.grammar.vocabulary import (
    CALLED,
    LARGE_NUMBERS,
)

DEGREE = Quotient(PI, Number(Fraction(180)))
"""This very object stands for a degree sign, so that a reader of quantities can tell it from a written pi/180."""

STARTS = frozenset(
    {"(", "\\frac", "\\sqrt", "\\surd", "\\binom", "\\lfloor", "\\lceil", "|open", "\\int", "\\sum", "\\prod", "\\lim",
     "\\begin{vmatrix}"}
)  # fmt: skip


ENDS_UNIT = frozenset({"the end", ",", ";", "and", "or", ")", "}", "^"})


class Mathematics(Naming):
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
                if self.is_power_factor(factors[-1], before):
                    factors.append(self.power())
                    continue
                if len(factors) > 1 or not self.backward_product(before):
                    raise self.error("a number directly after another value: write the sign between them")
                factors.append(self.power())
                if self.starts_factor():
                    raise self.error("a number between two letters: a power or a factor")
                break
            start = self.index
            if token.text == "(" and _is_function_power(factors[-1]):
                raise self.error("a power of a function that is not known")
            if token.text == "(" and token.glued and isinstance(factors[-1], Symbol) and self.holds_number():
                raise self.error("a letter before a number in brackets: a value of a function, or a product")
            factor = self.power()
            fraction = mixed_number(factors[-1], factor) if before.integer and token.text == "\\frac" else None
            if fraction is None:
                factors.append(factor)
            elif len(factors) == 1 and fraction is not AMBIGUOUS:
                factors = [fraction]
            else:
                raise GrammarError("a number directly before a fraction of numbers is ambiguous", position=start)
        return product_of(factors), len(factors)

    def is_power_factor(self, factor: Expression, before: Token) -> bool:
        """`(n+1)2^{n-1}` and `n2^{n-1}`: a number that has its own power behind a bracket or a letter.

        Behind a letter only where the power holds a letter, too: `a2^3` may be a power of a_2."""
        if self.tokens[self.index + 1].text != "^" or not self.token.integer:
            return False
        if before.text == ")":
            return not isinstance(factor, Number)
        if not isinstance(factor, Symbol) or before.kind not in ("word", "symbol"):
            return False
        end = self.tokens[self.index + 2 : self.index + 12]
        braced = end[0].text == "{"
        inside = itertools.takewhile(lambda token: token.text != "}", end[1:]) if braced else end[:1]
        return any(token.kind in ("word", "symbol") for token in inside)

    def holds_number(self) -> bool:
        """Whether the bracket here holds digits and nothing else: `x(2)` is hardly 2x."""
        return self.tokens[self.index + 1].kind == "number" and self.tokens[self.index + 2].text == ")"

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
        if after.glued and after.kind in ("word", "symbol"):
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
                if len(name) > 1 and name in self.context.units and self.tokens[self.index + 1].text in ENDS_UNIT:
                    # `90 \text{ min}`: no function, where nothing follows that it could take.
                    return False
                is_letter = name in CONSTANTS or (len(name) == 1 and name.isalpha() and name not in self.context.units)
                return is_letter or self.is_function(name)
            case "mark":
                if token.text == "|":
                    return self.bars == 0
                return token.text in STARTS and not (token.text == "\\frac" and self.is_unit_fraction())
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


def _is_function_power(node: Expression) -> bool:
    return isinstance(node, Power) and isinstance(node.base, Symbol) and node.base.name in CALLED
