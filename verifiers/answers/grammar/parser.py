"""Tokens to a tree, by recursive descent. The whole text is read or it is refused; so is what has two usual readings.

Refused as ambiguous, with what to write instead: `1/2x`, `sin x (x+1)`, `f(2)` for an unknown `f`, `sin^-1 x`, two
numbers side by side. Read as people mean it: `2x`, `x2`, `\\frac12`, the mixed number `1\\frac{1}{2}`,
`2\\sin x\\cos x`, `-2^2 = -4`, `2^3^2 = 2^9`. `log` without a base is the natural logarithm, as in
Python and in SymPy; `log(a, b)` has base b.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from fractions import Fraction
from typing import TypeVar

from verifiers.answers.grammar.errors import GrammarError, TooLargeError
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
from verifiers.answers.grammar.tokens import Token, tokenize

MAX_DEPTH = 40
"""Of brackets, exponents and function arguments together."""

FUNCTIONS: dict[str, tuple[str, int, int]] = {
    **{name: (name, 1, 1) for name in ("sqrt", "cbrt", "abs", "exp", "ln", "sin", "cos", "tan", "cot", "sec", "csc")},
    **{name: (name, 1, 1) for name in ("sinh", "cosh", "tanh", "floor", "asin", "acos", "atan", "factorial")},
    "arcsin": ("asin", 1, 1),
    "arccos": ("acos", 1, 1),
    "arctan": ("atan", 1, 1),
    "ceil": ("ceil", 1, 1),
    "ceiling": ("ceil", 1, 1),
    "log": ("log", 1, 2),
    "binomial": ("binomial", 2, 2),
    "gcd": ("gcd", 2, 50),
    "lcm": ("lcm", 2, 50),
    "min": ("min", 1, 50),
    "max": ("max", 1, 50),
}
"""Written name: (name in the tree, fewest arguments, most arguments)."""

BARE = frozenset({"sin", "cos", "tan", "cot", "sec", "csc", "ln", "log", "sinh", "cosh", "tanh", "exp"})
"""Functions whose argument may stand without brackets."""

CONSTANTS: dict[str, Constant] = {
    "pi": Constant("pi"),
    "e": Constant("e"),
    "E": Constant("e"),
    "i": Constant("i"),
    "I": Constant("i"),
}
NOT_VALUES = frozenset({"nan", "inf", "infinity", "oo", "zoo", "infty", "None", "undefined"})
AMBIGUOUS = Symbol("")
FUNCTION_LETTERS = frozenset("fgh")
"""Before a bracket these are functions to any reader, even where a variable has the name."""


Part = TypeVar("Part")


class ExpressionParser:
    """One list of tokens, one use. `modular` admits `%` and `//` with Python's meaning (rounding down)."""

    def __init__(self, tokens: list[Token], variables: Collection[str], *, modular: bool = False) -> None:
        self.tokens = tokens
        self.variables = frozenset(variables)
        self.modular = modular
        self.index = 0
        self.depth = 0
        self.bars = 0

    # -- reading tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def at(self, *marks: str) -> bool:
        return self.token.kind == "mark" and self.token.text in marks

    def take(self) -> Token:
        token = self.token
        self.index += 1
        return token

    def expect(self, mark: str) -> None:
        if not self.at(mark):
            raise self.error(f"expected {mark!r} but found {self.token.text[:20]!r}")
        self.index += 1

    def error(self, message: str) -> GrammarError:
        return GrammarError(message, position=self.index)

    def nested(self, read: Callable[[], Part]) -> Part:
        """Reads one level deeper. Raises TooLargeError beyond MAX_DEPTH."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooLargeError(f"nested deeper than {MAX_DEPTH} levels", position=self.index)
        node = read()
        self.depth -= 1
        return node

    # -- the grammar, from the loosest binding to the tightest

    def whole(self) -> Expression:
        node = self.sum()
        if self.token.kind != "end":
            raise self.error(f"cannot read on at {self.token.text[:20]!r}")
        return node

    def sum(self) -> Expression:
        terms = [self.term()]
        while self.at("+", "-"):
            negative = self.take().text == "-"
            term = self.term()
            terms.append(Negation(term) if negative else term)
        return terms[0] if len(terms) == 1 else Sum(tuple(terms))

    def term(self) -> Expression:
        above: list[Expression] = [self.run()[0]]
        below: list[Expression] = []
        divisions = 0
        while self.at("*", "/", "//", "%"):
            sign = self.take().text
            if sign in ("//", "%") and not self.modular:
                raise self.error(f"{sign!r} is not in the language of answers")
            factor, count = self.run()
            if sign != "*" and count > 1:
                raise self.error(f"a product without a sign after {sign!r} is ambiguous: add brackets")
            if sign == "*":
                above.append(factor)
            elif sign == "/":
                below.append(factor)
            else:
                divisions += 1
                if divisions > MAX_DEPTH // 4:
                    raise TooLargeError("too many divisions with remainder in a row", position=self.index)
                name = "floordiv" if sign == "//" else "mod"
                above, below = [Call(name, (_fraction(above, below), factor))], []
        return _fraction(above, below)

    def run(self) -> tuple[Expression, int]:
        """Factors side by side, `2x(x+1)`, and how many they were."""
        factors = [self.signed()]
        while self.starts_factor():
            before, token = self.tokens[self.index - 1], self.token
            if token.kind == "number" and not self.backward_product(before):
                raise self.error("a number directly after another value: write the sign between them")
            if token.text == "(" and isinstance(factors[-1], Symbol) and factors[-1].name in FUNCTION_LETTERS:
                raise self.error(f"{factors[-1].name}(...) reads as a function that is not known")
            start = self.index
            factor = self.power()
            mixed = mixed_number(factors[-1], factor) if before.integer and token.text == "\\frac" else None
            if mixed is None:
                factors.append(factor)
            elif len(factors) == 1 and mixed is not AMBIGUOUS:
                factors = [mixed]
            else:
                raise GrammarError("a number directly before a fraction of numbers is ambiguous", position=start)
        return product_of(factors), len(factors)

    def backward_product(self, before: Token) -> bool:
        """`x2` for `2x`: digits glued to a variable, and nothing bound to them."""
        following = self.tokens[self.index + 1]
        bound = following.kind == "mark" and following.text in ("^", "!", "\\frac")
        is_variable = before.kind == "word" and self.is_variable(before.text)
        return is_variable and self.token.glued and self.token.integer and not bound

    def starts_factor(self) -> bool:
        token = self.token
        if token.kind in ("number", "word"):
            return True
        if token.text == "|":
            return self.bars == 0
        return self.at("(", "\\frac", "\\sqrt", "\\binom", "\\lfloor", "\\lceil", "|open")

    def signed(self) -> Expression:
        if self.at("+", "-"):
            negative = self.take().text == "-"
            of = self.nested(self.signed)
            return Negation(of) if negative else of
        return self.power()

    def power(self) -> Expression:
        base = self.postfix()
        if not self.at("^"):
            return base
        self.take()
        if self.at("\\circ"):
            self.take()
            return _degrees(base)
        return self.raised(base)

    def raised(self, base: Expression) -> Expression:
        if self.at("{"):
            if self.tokens[self.index + 1].text == "\\circ" and self.tokens[self.index + 2].text == "}":
                self.index += 3
                return _degrees(base)
            exponent = self.braced()
            if self.at("^", "!"):
                raise self.error("a power of a power without brackets")
            return Power(base, exponent)
        return Power(base, self.nested(self.signed))

    def postfix(self) -> Expression:
        node = self.atom()
        if self.at("!"):
            self.take()
            if self.at("!"):
                raise self.error("'!!' is not in the language")
            return Call("factorial", (node,))
        return node

    def atom(self) -> Expression:
        token = self.token
        if token.kind == "number":
            self.index += 1
            return Number(token.value)
        if token.kind == "word":
            return self.word()
        if self.at("(", "\\lfloor", "\\lceil", "|", "|open"):
            return self.bracketed(self.take().text)
        if self.at("\\frac", "\\binom"):
            name = self.take().text
            first, second = self.argument(), self.argument()
            return Quotient(first, second) if name == "\\frac" else Call("binomial", (first, second))
        if self.at("\\sqrt"):
            return self.root()
        if self.at("="):
            raise self.error("an equation where a value was expected")
        raise self.error(f"expected a value but found {token.text[:20]!r}")

    def bracketed(self, opening: str) -> Expression:
        closing, function = {
            "(": (")", None),
            "\\lfloor": ("\\rfloor", "floor"),
            "\\lceil": ("\\rceil", "ceil"),
            "|": ("|", "abs"),
            "|open": ("|close", "abs"),
        }[opening]
        outer, self.bars = self.bars, 1 if opening == "|" else 0
        node = self.nested(self.sum)
        self.expect(closing)
        self.bars = outer
        return Call(function, (node,)) if function else node

    def braced(self) -> Expression:
        self.expect("{")
        outer, self.bars = self.bars, 0
        node = self.nested(self.sum)
        self.expect("}")
        self.bars = outer
        return node

    def argument(self) -> Expression:
        """What a LaTeX command takes: braces, or else one digit or one letter, as TeX does."""
        token = self.token
        if self.at("{"):
            return self.braced()
        if token.kind == "number" and token.integer:
            self.tokens[self.index] = Token("number", token.text[0], Fraction(token.text[0]), token.glued, True)
            rest = token.text[1:]
            if rest:
                self.tokens.insert(self.index + 1, Token("number", rest, Fraction(rest), True, True))
            self.index += 1
            return Number(Fraction(token.text[0]))
        if token.kind == "word" and (len(token.text) == 1 or token.text in self.variables or token.text in CONSTANTS):
            return self.word()
        raise self.error("expected an argument in braces")

    def is_variable(self, name: str) -> bool:
        return name in self.variables

    def root(self) -> Expression:
        self.expect("\\sqrt")
        if self.at("["):
            self.take()
            degree = self.nested(self.sum)
            self.expect("]")
            return Call("root", (self.argument(), degree))
        if self.at("("):
            return Call("sqrt", (self.bracketed(self.take().text),))
        node = Call("sqrt", (self.argument(),))
        if self.token.kind == "number":
            raise self.error("how far the root reaches is ambiguous: use braces")
        return node

    # -- words

    def word(self) -> Expression:
        name = self.take().text
        if name in self.variables:
            return Symbol(name)
        if name in NOT_VALUES:
            raise self.error(f"{name!r} is not a value")
        if name in FUNCTIONS:
            return self.function(name)
        if name in CONSTANTS:
            return CONSTANTS[name]
        if len(name) > 1 and self.variables.intersection(name) and all(map(self.is_letter, name)):
            # `xy` is x times y: as TeX has it, a power behind it belongs to y alone.
            self.tokens[self.index - 1 : self.index] = [Token("word", letter) for letter in name]
            return self.nested(self.word_again)
        raise self.error(f"{name[:20]!r} is not known here")

    def is_letter(self, letter: str) -> bool:
        return letter in self.variables or letter in CONSTANTS

    def word_again(self) -> Expression:
        self.index -= 1
        return self.word()

    def function(self, written: str) -> Expression:
        name, fewest, most = FUNCTIONS[written]
        base: Expression | None = None
        power: Expression | None = None
        if name == "log" and self.at("_"):
            self.take()
            following = self.tokens[self.index + 1] if self.token.kind == "number" else self.token
            base = Number(self.take().value) if following.text == "(" else self.argument()
        if name in BARE and self.at("^"):
            self.take()
            power = self.braced() if self.at("{") else self.argument()
            if not (isinstance(power, Number) and power.value.denominator == 1 and power.value > 0):
                raise self.error(f"a power of {name} without brackets is ambiguous here")
        if self.at("("):
            self.take()
            outer, self.bars = self.bars, 0
            arguments = [self.nested(self.sum)]
            while self.at(","):
                self.take()
                arguments.append(self.nested(self.sum))
            self.expect(")")
            self.bars = outer
        elif name in BARE:
            arguments = [self.nested(self.bare_argument)]
        else:
            raise self.error(f"{written} needs brackets")
        if not fewest <= len(arguments) <= (1 if base else most):
            raise self.error(f"{written} does not take {len(arguments)} arguments")
        if base is not None:
            arguments.append(base)
        node = Call("ln" if name == "log" and len(arguments) == 1 else name, tuple(arguments))
        return node if power is None else Power(node, power)

    def bare_argument(self) -> Expression:
        """`2x` of `sin 2x`: factors up to the next function, sign or end; a bracket there would be ambiguous."""
        factors: list[Expression] = []
        while self.starts_factor() and not (self.token.kind == "word" and self.is_function(self.token.text)):
            if self.at("("):
                raise self.error("how far the function reaches is ambiguous: use brackets")
            if factors and self.token.kind == "number":
                raise self.error("a number directly after another value: write the sign between them")
            factors.append(self.power())
        if not factors:
            raise self.error("a function without an argument")
        if self.at("/"):
            raise self.error("how far the function reaches is ambiguous: use brackets")
        return product_of(factors)

    def is_function(self, word: str) -> bool:
        return word in FUNCTIONS and word not in self.variables


def parse_expression(text: str, variables: Collection[str] = ()) -> Expression:
    """The tree of a whole text. Raises GrammarError, and nothing else, for a text that is not in the language."""
    return ExpressionParser(tokenize(text), variables).whole()


def product_of(factors: list[Expression]) -> Expression:
    return factors[0] if len(factors) == 1 else Product(tuple(factors))


def _fraction(above: list[Expression], below: list[Expression]) -> Expression:
    return Quotient(product_of(above), product_of(below)) if below else product_of(above)


def mixed_number(whole: Expression, fraction: Expression) -> Expression | None:
    """1 and 1/2 make 3/2; None where the two are a plain product; AMBIGUOUS where a reader could not tell."""
    number = whole.of if isinstance(whole, Negation) else whole
    powered = isinstance(fraction, Power)
    match fraction.base if isinstance(fraction, Power) else fraction:
        case Quotient(Number(above), Number(below)) if isinstance(number, Number):
            if powered or not 0 < above < below or above.denominator * below.denominator != 1:
                return AMBIGUOUS
            value = Number(number.value + above / below)
            return Negation(value) if isinstance(whole, Negation) else value
        case _:
            return None


def _degrees(number: Expression) -> Expression:
    return Product((number, Quotient(CONSTANTS["pi"], Number(Fraction(180)))))
