r"""Recursive-descent parser for expressions, driven by the constructs of a language.

The reader itself knows sums, products, powers and brackets. Everything else is a construct: a function that reads on
from the current token, in a table of its `Language`. Constructs see the reader but not each other, so a new one is one
function and one row. Text is read whole or refused, and so is text with two usual readings. Conventions are those of
people: `2x`, `x2`, `\frac12`, the mixed number `1\frac{1}{2}`, `2\sin x\cos x`, `-2^2 = -4`, `2^3^2 = 2^9`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeVar

from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.notation import is_vector, vectors
from verifiers.answers.grammar.tokens import Token
from verifiers.answers.grammar.values import Infinity, Value
from verifiers.answers.grammar.vocabulary import GREEK_NAMES

MAX_DEPTH = 40
"""Maximum nesting of brackets, exponents and function arguments together."""
DEGREE = n.Quotient(n.Constant("pi"), n.Number(Fraction(180)))
"""Degree sign; this very object distinguishes it from a written pi/180."""

Part = TypeVar("Part")


@dataclass(frozen=True)
class Language:
    """Grammar of one input language: its constructs and words. Tables' keys: a sign's text, or a token's kind."""

    atoms: Mapping[str, Callable[[Reader], n.Expression]]
    """Parsers of values by their first token."""
    factor_signs: frozenset[str]
    """Signs that may begin another factor."""
    beside: Callable[[Reader, list[n.Expression]], None]
    """Reads an adjacent factor, and adds it or refuses it."""
    functions: Mapping[str, tuple[str, int, int]]
    """Written name: (name in the tree, fewest arguments, most arguments)."""
    bare: frozenset[str]
    """Functions whose argument may stand without brackets."""
    constants: Mapping[str, n.Constant]
    declared: bool = False
    """True if every symbol must be declared and nothing is guessed: specs and predicates."""
    modular: bool = False
    """True if `%` and `//` are read, with Python's meaning (rounding down)."""
    begins_unit: Callable[[Reader], bool] = lambda reader: False
    """True if a unit, not a factor, begins at the token after a value."""
    values: Mapping[str, Callable[[Reader], Value | None]] = field(default_factory=dict)
    """Parsers of values that are not expressions; they return None if the text is an expression after all."""
    infixes: Mapping[str, Callable[[Reader, Value], Value]] = field(default_factory=dict)
    """Parsers that continue at a sign after a value: an equation, a ratio, a congruence."""
    value: Callable[[Reader], Value] | None = None
    item: Callable[[Reader], Value] | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """Facts known before an answer is parsed: declared names, symbols of the expected answer, spellings of units."""

    variables: frozenset[str] = frozenset()
    familiar: frozenset[str] = frozenset()
    units: frozenset[str] = frozenset()
    wants_unit: bool = False
    nouns: bool = False
    """True if any noun may take the place of a unit."""
    counts: bool = False
    """True if a noun for a counted thing may take the place of a unit."""
    letters: frozenset[str] = frozenset()
    """Letters that are units after a number and a blank."""
    complex: bool = False
    """True if symbols are complex: a line over a symbol, or a star after it, is its conjugate."""


@dataclass(frozen=True, slots=True)
class Hint:
    """Ambiguities that the expected answer settles: round and square brackets around two numbers."""

    round_pair: Literal["tuple", "interval", "unknown"] = "unknown"
    square_pair: Literal["tuple", "interval"] = "interval"
    braces: bool = False
    """True if `{5}` without backslashes is a set."""


class Reader:
    """Parser of one list of tokens into an expression or value; used once."""

    def __init__(
        self, tokens: list[Token], language: Language, context: Context | None = None, hint: Hint | None = None
    ) -> None:
        self.tokens = tokens
        self.language = language
        self.context = context or Context()
        self.hint = hint or Hint()
        self.variables = self.context.variables | self.context.familiar
        self.index = 0
        self.depth = 0
        self.bars = 0
        """1 within a pair of `|`, where the next one closes."""
        self.upper_sign: bool | None = None
        r"""Current reading of `\pm`: True for its upper sign, False for its lower one, None if it may not occur."""
        self.has_both_signs = any(token.text in ("\\pm", "\\mp") for token in tokens)
        self.has_vectors = any(token.kind == "symbol" and is_vector(n.Symbol(token.text)) for token in tokens)
        self.both_signs = 0
        r"""Number of `\pm` read."""
        self.called = ""
        """Letter that the text defines as a function."""
        self.last_factor: n.Expression = n.ZERO
        self.item_depth = 0
        """Depth of the current value: units may follow at this depth, not within its brackets and fractions."""
        self.item_start = 0
        self.inside_determinant = False
        self.rereads = 0
        self.dotted = 0
        """Number of items that dots expanded to."""

    # -- tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def at(self, *signs: str) -> bool:
        token = self.tokens[self.index]
        return token.kind == "mark" and token.text in signs

    def peek(self, steps: int = 1) -> Token:
        """Returns a later token; a token list has several end marks, so two steps are always safe."""
        return self.tokens[self.index + steps]

    def texts(self, count: int) -> list[str]:
        return [token.text for token in self.tokens[self.index : self.index + count]]

    def take(self) -> Token:
        token = self.tokens[self.index]
        if token.kind == "end":
            raise self.error("unexpected end")
        self.index += 1
        return token

    def accept(self, *signs: str) -> str:
        """Consumes the next token if it is one of the given signs. Returns its text, or an empty text if it is not."""
        return self.take().text if self.at(*signs) else ""

    def expect(self, sign: str) -> None:
        if not self.at(sign):
            raise self.error(f"expected {sign!r} but found {self.token.text[:20]!r}")
        self.index += 1

    def error(self, message: str) -> GrammarError:
        return GrammarError(message, position=self.index)

    def end(self, found: Part) -> Part:
        """Returns a parsed result if no token is left, else raises GrammarError."""
        if self.token.kind != "end":
            raise self.error(f"cannot read on at {self.token.text[:20]!r}")
        return found

    def nested(self, read: Callable[[], Part]) -> Part:
        """Calls a parsing function one nesting level deeper and returns its result. Raises TooLargeError beyond
        MAX_DEPTH."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooLargeError(f"nested deeper than {MAX_DEPTH} levels", position=self.index)
        found = read()
        self.depth -= 1
        return found

    def up_to(self, closing: str, read: Callable[[], Part], *, bars: int = 0) -> Part:
        """Reads the content of a bracket with a parsing function, one level deeper, and the closing bracket."""
        outer, self.bars = self.bars, bars
        found = self.nested(read)
        self.expect(closing)
        self.bars = outer
        return found

    def saved(self) -> Callable[[], None]:
        """Returns a function that restores the reader to its current state."""
        tokens = list(self.tokens)
        state = (self.index, self.depth, self.bars, self.upper_sign, self.both_signs, self.hint)
        item = self.item_depth, self.item_start

        def restore() -> None:
            self.tokens = tokens
            self.index, self.depth, self.bars, self.upper_sign, self.both_signs, self.hint = state
            self.item_depth, self.item_start = item

        return restore

    # -- names

    def is_variable(self, name: str) -> bool:
        if name in self.variables:
            return True
        if self.language.declared or name in self.language.constants:
            return False
        return len(name) == 1 or name in GREEK_NAMES

    def is_letter(self, letter: str) -> bool:
        return self.is_variable(letter) or letter in self.language.constants

    def is_function(self, word: str) -> bool:
        return word in self.language.functions and word not in self.variables

    # -- the grammar of expressions, from the loosest binding to the tightest

    def sum(self) -> n.Expression:
        terms = [self.term()]
        while self.at("+", "-", "\\pm", "\\mp"):
            sign = "" if self.at("\\pm", "\\mp") else self.take().text
            term = self.term()
            terms.append(n.Negation(term) if sign == "-" else term)
        return terms[0] if len(terms) == 1 else n.Sum(tuple(terms))

    def term(self) -> n.Expression:
        both = self.accept("\\pm", "\\mp")
        if both and self.upper_sign is None:
            raise self.error("both signs at once")
        node = self.quotient()
        while self.starts_factor():
            # Only after a fraction such as `3/4` and a blank: otherwise the factor was read already.
            node = n.Product((node, self.quotient()))
        if not both:
            return node
        self.both_signs += 1
        return node if self.upper_sign == (both == "\\pm") else n.Negation(node)

    def quotient(self) -> n.Expression:
        above: list[n.Expression] = [self.run()[0]]
        below: list[n.Expression] = []
        divisions = 0
        while self.at("*", "\\times", "/", "//", "%"):
            sign = self.take().text
            crossed, sign = sign == "\\times", "*" if sign == "\\times" else sign
            if sign in ("//", "%") and not self.language.modular:
                raise self.error(f"{sign!r} is not in the language of answers")
            factor, count = self.run()
            if crossed and self.has_vectors and is_vector(factor) and any(map(is_vector, above)):
                raise self.error("a cross product of vectors is not read")
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
                above, below = [n.FunctionCall(name, (_fraction(above, below), factor))], []
        if self.has_vectors and sum(map(vectors, (*above, *below))) > 2:
            raise self.error("a product of more than two vectors")
        return _fraction(above, below)

    def run(self) -> tuple[n.Expression, int]:
        """Reads a product of adjacent factors, `2x(x+1)`. Returns it with the number of factors."""
        begin = self.index
        factors = [self.signed()]
        while self.starts_factor() and not (self.index == begin + 1 and self._after_fraction(begin)):
            self.language.beside(self, factors)
        if self.has_vectors and sum(map(vectors, factors)) > 1 < len(factors):
            raise self.error("vectors or matrices side by side: their order counts")
        self.last_factor = factors[-1]
        return product_of(factors), len(factors)

    def starts_factor(self) -> bool:
        token = self.tokens[self.index]
        match token.kind:
            case "number" | "based":
                return True
            case "mark":
                if token.text == "|":
                    return self.bars == 0
                return token.text in self.language.factor_signs and not self.language.begins_unit(self)
            case "word" | "text" | "symbol":
                return not self.language.begins_unit(self)
        return False

    def _after_fraction(self, begin: int) -> bool:
        """True right after a fraction of digits that a blank ends, such as the `3/4` of `3/4 x`. `begin` is the index
        of its last token."""
        if begin < 2 or self.language.declared or self.token.glued:
            return False
        above, slash, below = self.tokens[begin - 2 : begin + 1]
        return above.integer and slash.text == "/" and slash.glued and below.integer and below.glued

    def signed(self) -> n.Expression:
        if not self.at("+", "-"):
            return self.power()
        negative = self.take().text == "-"
        of = self.nested(self.signed)
        return n.Negation(of) if negative else of

    def power(self) -> n.Expression:
        base = self.postfix()
        for star in (["^", "*"], ["^", "{", "*", "}"]) if self.context.complex else ():
            if [text.replace("\\ast", "*") for text in self.texts(len(star))] == star:
                self.index += len(star)
                base = n.FunctionCall("conj", (base,))
        if not self.accept("^"):
            return base
        if not self.at("{"):
            return n.Power(base, self.nested(self.signed))
        exponent = self.braced()
        if self.at("^", "!"):
            raise self.error("a power of a power without brackets")
        return n.Power(base, exponent)

    def postfix(self) -> n.Expression:
        node = self.atom()
        if self.accept("!"):
            if self.at("!"):
                raise self.error("'!!' is not in the language")
            node = n.FunctionCall("factorial", (node,))
        return n.Product((node, DEGREE)) if self.accept("\\degree") else node

    def atom(self) -> n.Expression:
        token = self.tokens[self.index]
        construct = self.language.atoms.get(token.text if token.kind == "mark" else token.kind)
        if construct is not None:
            return construct(self)
        if self.at("="):
            raise self.error("an equation where a value was expected")
        raise self.error(f"expected a value but found {token.text[:20]!r}")

    def braced(self) -> n.Expression:
        self.expect("{")
        return self.up_to("}", self.layered)

    def layered(self) -> n.Expression:
        r"""Reads a sum, or TeX's `a \over b` or `a \choose b`, which reach to the ends of their group."""
        node = self.sum()
        sign = self.accept("\\over", "\\choose")
        if not sign:
            return node
        below = self.sum()
        return n.Quotient(node, below) if sign == "\\over" else n.FunctionCall("binomial", (node, below))

    def argument(self) -> n.Expression:
        """Reads a LaTeX command's argument: the content of braces, or else one digit or one letter, as TeX does."""
        token = self.token
        if self.at("{"):
            return self.braced()
        if token.kind == "number" and token.integer:
            self.tokens[self.index] = Token("number", token.text[0], Fraction(token.text[0]), token.glued, True)
            if rest := token.text[1:]:
                self.tokens.insert(self.index + 1, Token("number", rest, Fraction(rest), True, True))
            self.index += 1
            return n.Number(Fraction(token.text[0]))
        known = token.text in self.variables or token.text in self.language.constants
        if not self.language.declared:
            if token.kind in ("symbol", "text") or self.at("\\frac", "\\sqrt"):
                return self.nested(self.atom)
            if token.kind == "word" and not (self.is_variable(token.text) or known or self.is_function(token.text)):
                first, rest = token.text[0], token.text[1:]
                self.tokens[self.index : self.index + 1] = [
                    Token("word", first, glued=token.glued),
                    Token("word", rest),
                ]
                return self.atom()
        if token.kind == "word" and (len(token.text) == 1 or known):
            return self.atom()
        raise self.error("expected an argument in braces")

    # -- values that are no expressions

    def operand(self) -> Value:
        """Reads one value of any kind. Raises GrammarError if this language only has expressions."""
        if self.language.value is None:
            raise self.error("a value that is not an expression")
        return self.language.value(self)

    def item(self) -> Value:
        """Reads a value and what a sign after it adds: an equation, a ratio, a membership. Raises GrammarError if this
        language only has expressions."""
        if self.language.item is None:
            raise self.error("a value that is not an expression")
        return self.language.item(self)

    def infinity(self) -> Infinity | None:
        """Reads a sign of infinity with an optional plus or minus; returns None if none comes next."""
        signed = self.at("+", "-")
        token = self.peek() if signed else self.token
        if token.text not in ("\\infty", "infinity", "oo", "inf", "Infinity") or token.text in self.variables:
            return None
        negative = self.at("-")
        self.index += 2 if signed else 1
        return Infinity(-1 if negative else 1)


def product_of(factors: list[n.Expression]) -> n.Expression:
    return factors[0] if len(factors) == 1 else n.Product(tuple(factors))


def _fraction(above: list[n.Expression], below: list[n.Expression]) -> n.Expression:
    return n.Quotient(product_of(above), product_of(below)) if below else product_of(above)
