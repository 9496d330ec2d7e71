"""Units behind a value: `m/s^2`, `\\text{ kg\\,m}^2`, `square feet`, `miles per hour`. Atoms stay as written."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

from verifiers.answers.grammar.characters import plain
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.mathematics import Mathematics
from verifiers.answers.grammar.nodes import Number
from verifiers.answers.grammar.notation import ENDS, tokens_of
from verifiers.answers.grammar.tokens import Token
from verifiers.answers.grammar.vocabulary import AFTER, BEFORE, SCALES
from verifiers.answers.units import Dimension, UnitError, combined

MAX_ATOMS = 12
MAX_POWER = 12

Unit = tuple[tuple[str, int], ...]


def unit(parser: Mathematics, names: Collection[str]) -> Unit:
    """Reads up to the end of the unit. Raises GrammarError for what is not one, or could be read in two ways."""
    if parser.is_noun(parser.token):
        return ((parser.take().text, 1),)
    spread(parser)
    if parser.at("\\frac"):
        return _fraction(parser, names)
    atoms: list[tuple[str, int]] = []
    below = divided = False
    while True:
        spread(parser)
        if below and parser.at("("):
            parser.take()
            atoms += [(name, -power) for name, power in parser.nested(lambda: unit(parser, names))]
            parser.expect(")")
        else:
            name, power = _atom(parser, names)
            atoms.append((name, -power if below else power))
        if len(atoms) > MAX_ATOMS:
            raise parser.error("a unit of too many parts")
        spread(parser)
        below = False
        if parser.at("/") or parser.token.text == "per":
            parser.take()
            below = divided = True
        elif parser.at("*") or _is_atom(parser.token, names):
            if divided:
                raise parser.error("a unit whose denominator is ambiguous: use brackets or powers")
            if parser.at("*"):
                parser.take()
        else:
            return tuple(atoms)


def _fraction(parser: Mathematics, names: Collection[str]) -> Unit:
    """`\\frac{m}{s^2}`, and nothing beside it."""
    parser.take()
    found: list[tuple[str, int]] = []
    for sign in (1, -1):
        parser.expect("{")
        found += [(name, sign * power) for name, power in parser.nested(lambda: unit(parser, names))]
        parser.expect("}")
    if len(found) > MAX_ATOMS:
        raise parser.error("a unit of too many parts")
    return tuple(found)


def spread(parser: Mathematics) -> None:
    """Replaces text, as in `\\text{ m/s}`, by its tokens."""
    token = parser.token
    if token.kind == "text" and token.text not in parser.context.units:
        inside = tokens_of(plain(token.text.replace("\\ ", " ")))
        inside = inside[: -len(ENDS)]
        if not inside or any(part.kind == "text" for part in inside):
            raise GrammarError("a text that is no unit", position=parser.index)
        following = parser.tokens[parser.index + 1]
        if following.kind == "number":
            following.glued = False
        parser.tokens[parser.index : parser.index + 1] = inside


def _is_atom(token: Token, names: Collection[str]) -> bool:
    return token.kind in ("word", "unit", "text") and (token.text in names or token.text in BEFORE)


def _atom(parser: Mathematics, names: Collection[str]) -> tuple[str, int]:
    token = parser.take()
    power = 1
    if token.text in BEFORE and token.kind == "word":
        power = BEFORE[token.text]
        token = parser.take()
    if token.kind == "mark" and token.text == "\\degree":
        follows = parser.token.kind in ("word", "text") and parser.token.text in SCALES
        return (SCALES[parser.take().text] if follows else "degree"), power
    if token.kind not in ("word", "unit", "text") or token.text not in names:
        raise parser.error(f"{token.text[:20]!r} is not a unit that is known")
    if parser.token.kind == "word" and parser.token.text in AFTER:
        power *= AFTER[parser.take().text]
    elif parser.at("^"):
        parser.take()
        power *= _power(parser)
    elif parser.token.integer and parser.token.glued and parser.token.text in ("2", "3") and token.kind == "word":
        power *= int(parser.take().text)
    return token.text, power


def _power(parser: Mathematics) -> int:
    braces = parser.at("{")
    if braces:
        parser.take()
    negative = parser.at("-")
    if negative:
        parser.take()
    token = parser.take()
    if not token.integer or not 0 < token.value <= MAX_POWER:
        raise parser.error("a power of a unit that is not a small whole number")
    if braces:
        parser.expect("}")
    return -int(token.value) if negative else int(token.value)


def parts(parser: Mathematics, whole: Fraction, first: Unit) -> Number | None:
    """`5 ft 3 in`, `2 hours 30 minutes`: what smaller parts add to a whole number of one unit; None where none follow.

    Raises GrammarError for a part that is not smaller, or of another kind.
    """
    if not _at_number(parser) or len(first) != 1:
        return None
    total, written = whole, f"{whole} {first[0][0]}"
    factor, _, dimension = _known(parser, first)
    last = factor
    while _at_number(parser):
        amount = parser.take()
        smaller = unit(parser, parser.context.units)
        size, _, kind = _known(parser, smaller)
        if kind != dimension or not dimension or size >= last or amount.value * size >= last:
            raise parser.error("parts of a quantity that do not belong together")
        total += amount.value * size / factor
        last = size
        written += f" {amount.text} {smaller[0][0]}"
    return Number(total, written)


def _at_number(parser: Mathematics) -> bool:
    return parser.token.kind == "number"


def _known(parser: Mathematics, read: Unit) -> tuple[Fraction, int, Dimension]:
    try:
        return combined(read)
    except UnitError as error:
        raise parser.error(str(error)) from error
