r"""Classifies a word as a symbol, a constant or a function, and reads a function's arguments.

In answers every single letter is a symbol, unless it is `e`, `i` or declared, and `f`, `g` or `h` before a bracket is
an unknown function; words are products of their letters only in customary cases. In the plain language symbols must be
declared. Refused as ambiguous: `\sin x (x+1)`, `\sin x/2`. `\sin^{-1}` is the inverse, never 1/sin, and the plain
language refuses it.
"""

from __future__ import annotations

import re

from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar import vocabulary as known
from verifiers.answers.grammar.reader import Reader, product_of
from verifiers.answers.grammar.reading.factors import backward_product
from verifiers.answers.grammar.tokens import Token

RATE = re.compile("d([A-Za-z])")
SETS_OF_ARGUMENTS = ("min", "max", "gcd", "lcm")
r"""Functions whose arguments may stand in braces, such as `\max\{1, 2\}`."""


def word(reader: Reader) -> n.Expression:
    """Reads a word of letters: a symbol, a constant, a function, or a product of letters."""
    name = reader.take().text
    declared = reader.language.declared
    if name in reader.variables:
        return n.Symbol(name) if declared else subscripted(reader, name)
    if name in known.NOT_VALUES:
        raise reader.error(f"{name!r} is not a value")
    if name in reader.language.functions:
        return function(reader, name)
    if name in reader.language.constants:
        return reader.language.constants[name]
    if declared:
        splits = len(name) > 1 and reader.variables.intersection(name) and all(map(reader.is_letter, name))
    else:
        if len(name) == 1 or name in known.GREEK_NAMES or (name in known.NAMES and reader.at("=", "_", "\\approx")):
            return subscripted(reader, name)
        if RATE.fullmatch(name) and reader.token.text == "/" and RATE.fullmatch(reader.peek().text):
            reader.index += 2
            return n.Symbol(f"{name}/{reader.peek(-1).text}")
        splits = (len(name) < 4 or known.CUSTOMARY.fullmatch(name) or reader.variables.issuperset(name)) and not (
            RATE.fullmatch(name) or known.WORD_PARTS.search(name)
        )
    if not splits:
        raise reader.error(f"unknown name {name[:20]!r}")
    # `xy` is x times y; as in TeX, a power after it applies to y alone.
    reader.index -= 1
    reader.tokens[reader.index : reader.index + 1] = [Token("word", letter) for letter in name]
    return reader.nested(reader.atom)


def symbol(reader: Reader) -> n.Expression:
    """Reads a Greek letter, or a letter with a decoration such as a bar, together with its subscript."""
    if reader.context.complex and re.fullmatch("bar [a-zA-Z]", reader.token.text):
        return n.FunctionCall("conj", (n.Symbol(reader.take().text[-1]),))
    return subscripted(reader, reader.take().text)


def upright(reader: Reader) -> n.Expression:
    r"""Reads text in upright letters, such as `\mathrm{e}`, as a constant, function or symbol. Raises GrammarError for
    other text."""
    name = reader.token.text
    if name in known.CONSTANTS and name not in reader.variables:
        reader.index += 1
        return known.CONSTANTS[name]
    if reader.is_function(name):
        reader.tokens[reader.index] = Token("word", name, glued=reader.token.glued)
        return word(reader)
    if re.fullmatch("[A-Za-z]", name) or name in reader.variables:
        reader.index += 1
        return subscripted(reader, name)
    raise reader.error(f"the text {name[:20]!r} is not mathematics")


def subscripted(reader: Reader, name: str) -> n.Expression:
    """Reads the subscript and primes after a symbol's name, or the arguments if it names an unknown function."""
    if reader.accept("_"):
        name += "_" + subscript(reader)
    primes = 0
    while reader.accept("'"):
        primes += 1
    name += "'" * primes
    if reader.at("^") and name in known.CALLED and _inverts(reader):
        name += "^-1"
        primes = 1
    # `mg(1 - \\cos\\theta)` is a weight, `m g(t)` the value of a function.
    weight = (
        name == "g" and reader.index > 1 and reader.peek(-2).text in ("m", "M", "rho") and reader.peek(2).text != ")"
    )
    if reader.at("(") and not weight and (primes or name.partition("_")[0] in known.CALLED or name == reader.called):
        reader.take()
        return n.FunctionCall(name, tuple(_listed(reader, ")")))
    return n.Symbol(name)


def subscript(reader: Reader) -> str:
    """Reads a subscript and returns it as text: digits, letters and simple arithmetic."""
    if not reader.accept("{"):
        token = reader.take()
        if token.kind not in ("number", "word", "symbol", "text"):
            raise reader.error("an unreadable subscript")
        return token.text
    parts: list[str] = []
    while not reader.at("}"):
        token = reader.take()
        if token.kind == "mark" and token.text not in ("+", "-", ",", "*", "\\times", "(", ")"):
            raise reader.error("an unreadable subscript")
        parts.append("*" if token.text == "\\times" else token.text)
    reader.take()
    if not parts:
        raise reader.error("an empty subscript")
    return "".join(parts)


def _inverts(reader: Reader) -> bool:
    """True if `^{-1}` and then a bracket come next, as in `f^{-1}(x)`; the former is then consumed."""
    texts = reader.texts(6)
    for sign in (["^", "{", "-", "1", "}"], ["^", "-", "1"]):
        if texts[: len(sign)] == sign and texts[len(sign) : len(sign) + 1] == ["("]:
            reader.index += len(sign)
            return True
    return False


def function(reader: Reader, written: str) -> n.Expression:
    r"""Reads a function call after its name: a base or power such as `\sin^2`, and the arguments."""
    name, fewest, most = reader.language.functions[written]
    declared, bare = reader.language.declared, reader.language.bare
    base: n.Expression | None = None
    power: n.Expression | None = None
    while reader.at("_", "^"):
        if reader.take().text == "_":
            if written != "log" or base is not None:
                raise reader.error(f"{written} has no base")
            base = _base(reader)
        elif power is not None:
            raise reader.error("two powers of a function")
        elif reader.at("{"):
            power = reader.braced()
        else:
            power = reader.argument() if declared else reader.nested(reader.signed)
    arguments = _arguments(reader, written)
    if not fewest <= len(arguments) <= (1 if base else most):
        raise reader.error(f"{written} does not take {len(arguments)} arguments")
    if base is not None:
        arguments.append(base)
    inverse = not declared and power == n.Negation(n.ONE)
    if inverse and name not in known.INVERSES:
        raise reader.error(f"{written} to the power of -1 is ambiguous: write the inverse or the quotient")
    node = _call(known.INVERSES[name] if inverse else name, arguments)
    if power is None or inverse:
        return node
    if written not in bare:
        raise reader.error(f"a power of {written} without brackets")
    positive = isinstance(power, n.Number) and power.value > 0 and (power.value.denominator == 1 or not declared)
    if not (positive or (isinstance(power, n.Symbol) and not declared)):
        raise reader.error(f"a power of {written} without brackets is ambiguous here")
    return n.Power(node, power)


def _base(reader: Reader) -> n.Expression:
    """Reads the base of `log`: a whole number before a bracket or blank, else one digit or braces."""
    following = reader.peek() if reader.token.kind == "number" else reader.token
    whole = following.text == "(" or not following.glued
    return n.Number(reader.take().value) if reader.token.kind == "number" and whole else reader.argument()


def _call(name: str, arguments: list[n.Expression]) -> n.Expression:
    match name:
        case "cis":
            return n.Power(known.CONSTANTS["e"], n.Product((known.CONSTANTS["i"], arguments[0])))
        case "lg":
            return n.FunctionCall("log", (arguments[0], n.number(10)))
        case "log" if len(arguments) == 1:
            return n.FunctionCall("ln", tuple(arguments))
        case _:
            return n.FunctionCall(name, tuple(arguments))


def _listed(reader: Reader, closing: str) -> list[n.Expression]:
    """Reads a function's comma-separated arguments up to the closing bracket, and returns them."""
    outer, reader.bars = reader.bars, 0
    found = [reader.nested(reader.sum)]
    while reader.accept(","):
        found.append(reader.nested(reader.sum))
    reader.expect(closing)
    reader.bars = outer
    return found


def _arguments(reader: Reader, written: str) -> list[n.Expression]:
    pairs = {"(": ")"} if reader.language.declared else {"(": ")", "[": "]", "\\{": "\\}", "{": "}"}
    closing = pairs.get(reader.token.text) if reader.token.kind == "mark" else None
    if closing is not None and (closing != "\\}" or written in SETS_OF_ARGUMENTS):
        reader.take()
        return _listed(reader, closing)
    if written in reader.language.bare:
        return [reader.nested(lambda: _bare_argument(reader))]
    if written == "sqrt" and reader.token.kind in ("number", "word") and not reader.language.declared:
        return [reader.nested(reader.atom)]
    raise reader.error(f"{written} needs brackets")


BUILT = {"\\sqrt", "sqrt", "\\frac", "\\dfrac", "\\tfrac", "\\cfrac"}
r"""Factors that could belong to the argument or follow it: `\cos t\sqrt{g/l}`, `\sin x\sqrt{y}`."""


def _bare_argument(reader: Reader) -> n.Expression:
    """Reads a function's argument without brackets, such as the `2x` of `sin 2x`. Raises GrammarError if its end is
    unclear, because a bracket or a slash follows."""
    factors: list[n.Expression] = []
    declared = reader.language.declared
    while reader.starts_factor() and not (reader.token.kind == "word" and reader.is_function(reader.token.text)):
        if reader.at("(", "[", "\\{") or (factors and (reader.token.text in BUILT or reader.at("|", "|open"))):
            raise reader.error("how far the function reaches is ambiguous: use brackets")
        if factors and reader.token.kind == "number" and (declared or not backward_product(reader, reader.peek(-1))):
            raise reader.error("a number directly after another value: write the sign between them")
        factors.append(reader.power())
    if not factors:
        raise reader.error("a function without an argument")
    following = reader.peek() if reader.at("/") else None
    if following is not None and (declared or not (following.kind == "word" and reader.is_function(following.text))):
        raise reader.error("how far the function reaches is ambiguous: use brackets")
    return product_of(factors)
