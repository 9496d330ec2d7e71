r"""Numbers with a suffix or prefix: units, degrees, money, the base of digits.

Units are read as `m/s^2`, `\text{ kg\,m}^2`, `square feet`, `miles per hour`, `25 \frac{\text{m}}{\text{s}}`; their
atoms stay as written. Upright letters after a number are always units; italic letters are if a unit is expected, if one
of them is a unit name of several letters, and in `\frac{m}{s}` and `\frac{m}{s^2}` after a number and a blank.
Everything else is a product of symbols.
"""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import Expression, Negation, Number, Product
from verifiers.answers.grammar.notation import ANSWERS
from verifiers.answers.grammar.number_words import COUNTED
from verifiers.answers.grammar.reader import DEGREE, Reader
from verifiers.answers.grammar.tokens import ENDS, Token, plain
from verifiers.answers.grammar.units import LENGTH, NONE, UNITS, Dimension, UnitError, combined
from verifiers.answers.grammar.values import BaseNumber, Quantity, Scalar, Value
from verifiers.answers.grammar.vocabulary import AFTER, BEFORE, CONSTANTS, GREEK_NAMES, LARGE_NUMBERS, SCALES

MAX_ATOMS = 12
MAX_POWER = 12
NOUN = re.compile("[a-z]{4,20}")
ENDS_UNIT = frozenset({"the end", ",", ";", "and", "or", "\\land", "\\lor", ")", "}", "^"})
ENDS_BRACKET = ENDS_UNIT - {"^"} | {"]", "\\}", "\\cup", "\\cap", "\\setminus", "=", "&"}
"""Signs after a bracket that closes an interval."""
COMMON_UNITS = frozenset("mgshLNJWVAK")
"""Letters that are units after a number and a blank; others only if a unit is expected."""
LETTERS = frozenset(name for name in UNITS if len(name) == 1 and name.isalpha())
"""All one-letter units, read if an answer with a unit settles the meaning."""
SEPARATORS = ENDS_UNIT - {"the end", "^"} | {"]", "\\}", "\\approx", "=", "!=", "<", "<=", ">", ">="}

Unit = tuple[tuple[str, int], ...]

RATES: tuple[Unit, ...] = ((("m", 1), ("s", -1)), (("m", 1), ("s", -2)))
"""Fractions of single letters that are units after a number and a blank."""


# -- whether a unit is next


def begins_unit(reader: Reader) -> bool:
    """True if the token after a value begins its unit, or otherwise cannot be a factor of the value."""
    token = reader.token
    if token.text == "[" and reader.peek().text in ENDS_BRACKET:
        # The closing bracket of `]0, 1[`.
        return True
    if reader.depth != reader.item_depth:
        return False
    match token.kind:
        case "word" | "symbol":
            return is_unit(reader, token)
        case "text":
            name = token.text
            if _with_sign(reader) is not None:
                return is_unit(reader, token)
            if len(name) > 1 and name in reader.context.units and reader.peek().text in ENDS_UNIT:
                # `90 \text{ min}`: not a function if no argument follows.
                return True
            # `\\mathrm{M}v^2` is a product, `0.1\\text{ M}` has a unit.
            letter = len(name) == 1 and name.isalpha() and not (name in reader.context.units and _ends_item(reader))
            return not (name in CONSTANTS or letter or reader.is_function(name))
        case _ if token.text == "(":
            # `2(1, 3)` is not a product of numbers.
            return reader.peek(-1).kind not in ("word", "symbol") and has_items(reader)
        case _:
            return token.text == "\\frac" and _is_unit_fraction(reader)


def has_items(reader: Reader) -> bool:
    """True if the bracket that comes next contains a list, judged by commas and the like up to its end. For plain
    braces, also true if they hold a condition, or a set operation follows."""
    braces = reader.token.text == "{"
    depth = 0
    for index in range(reader.index, len(reader.tokens)):
        token = reader.tokens[index]
        if token.kind != "mark":
            continue
        if token.text in ("(", "[", "{", "\\{", "\\langle"):
            depth += 1
        elif token.text in (")", "]", "}", "\\}", "\\rangle"):
            depth -= 1
            if depth == 0:
                return braces and reader.tokens[index + 1].text in ("\\cup", "\\cap", "\\setminus")
        elif depth == 1 and (token.text in (",", ";") or (braces and token.text in ("|", "\\mid", ":"))):
            return True
    return False


def is_unit(reader: Reader, token: Token) -> bool:
    """True if a token after a value begins its unit, rather than another factor."""
    if _with_sign(reader) is not None:
        return reader.context.wants_unit or (
            not _holds_letters(reader) and _behind_number(reader) and _ends_item(reader)
        )
    if token.kind in ("unit", "text") or (token.kind == "word" and token.text in BEFORE) or _is_noun(reader, token):
        return True
    if token.kind != "word" or token.text not in reader.context.units or token.text in reader.variables:
        return False
    if reader.context.wants_unit:
        return not reader.is_function(token.text) or reader.peek().text not in ("(", "{")
    if len(token.text) > 1:
        return not reader.context.familiar.issuperset(token.text) and _is_unit_word(reader)
    return not token.glued and _ends_unit(reader)


def _with_sign(reader: Reader) -> tuple[str, int] | None:
    r"""Looks for a unit with a Greek letter, `\mu m`, `\Omega` or `k\Omega`, at the current token. Returns its name and
    number of tokens, or None. `\mu g` in italics is a product: friction times gravity."""
    first, second = reader.token, reader.peek()
    if first.text in reader.variables:
        return None
    if first.kind == "symbol" and first.text == "Omega":
        return "ohm", 1
    if first.kind == "symbol" and first.text == "mu" and second.kind in ("word", "text"):
        known = f"u{second.text}" in reader.context.units and second.text not in reader.variables
        return (f"u{second.text}", 2) if known and (second.kind, second.text) != ("word", "g") else None
    if first.kind in ("word", "text") and second.kind == "symbol" and second.text == "Omega":
        return (f"{first.text}ohm", 2) if first.text in ("m", "k", "M", "G") else None
    return None


def _holds_letters(reader: Reader) -> bool:
    """True if the value being read already contains letters, so that a letter now continues a product. Example: `ha` of
    `2bh + 2ha`."""
    read = reader.tokens[reader.item_start : reader.index]
    return any(token.kind in ("word", "symbol") and token.text not in ("pi", "e") for token in read)


def _behind_number(reader: Reader) -> bool:
    """True if the previous token ends a number, a bracket or a power of one: `10^5`, not `r^2`."""
    tokens, index = reader.tokens, reader.index - 1
    if tokens[index].text in LARGE_NUMBERS:
        return True
    depth = int(tokens[index].text == "}")
    while depth:
        index -= 1
        depth += (tokens[index].text == "}") - (tokens[index].text == "{")
    if tokens[index - 1].text == "-" and tokens[index - 2].text == "^":
        index -= 1
    base = tokens[index - 2] if tokens[index - 1].text == "^" else tokens[index]
    return base.kind == "number" or base.text in (")", "{", "}")


def _is_unit_word(reader: Reader) -> bool:
    r"""True if the italic word that comes next is a unit, rather than a product of its letters. It must end an item.
    After a letter only lengths and angles count: `\pi cm^2`, but `hr` of `\pi hr^2` is a product. `\frac{3}{2} mg` is a
    weight, `3 mg` a mass."""
    token, before = reader.token, reader.peek(-1)
    if reader.is_function(token.text) and reader.peek().text in ("(", "{"):
        return False
    if before.kind != "number" and token.text == "mg":
        return False
    if token.glued and _holds_letters(reader):
        return False
    if not _behind_number(reader) and UNITS[token.text].dimension not in (LENGTH, NONE):
        return False
    if token.text in GREEK_NAMES and (token.glued or before.kind != "number"):
        return False
    return _ends_item(reader)


def _is_noun(reader: Reader, token: Token) -> bool:
    """True if a token is the noun of a count such as `5 apples`. It is the last word, follows a number, and has no
    other meaning."""
    if token.kind not in ("word", "text"):
        return False
    if not (reader.context.nouns and NOUN.fullmatch(token.text)) and not (
        reader.context.counts and token.text in COUNTED
    ):
        return False
    last = reader.peek().kind == "end" and reader.peek(-1).kind == "number"
    known = token.text in GREEK_NAMES or token.text in reader.variables or reader.is_function(token.text)
    return last and not known


def _ends_unit(reader: Reader) -> bool:
    """True if a single letter begins a unit that fills the rest of the item. `s^2` alone is the square of a symbol,
    `m^2` an area; `m g h` is a product, `m/s` and `N m` are units."""
    before = reader.peek(-1)
    letters = reader.context.letters
    if reader.token.text not in letters or not _behind_number(reader):
        return False
    found, _, _ = _ahead(reader)
    if not _ends_item(reader):
        return False
    if letters is LETTERS:
        return True
    if len(found) > 1:
        return any(len(atom) > 1 or exponent < 0 for atom, exponent in found) or found == (("N", 1), ("m", 1))
    ((name, power),) = found
    return (before.kind == "number" and power == 1) or (name == "m" and power in (2, 3))


def _ends_item(reader: Reader) -> bool:
    """True if a unit comes next and ends the item, or precedes a smaller part (`5 ft 3 in`)."""
    found, _, (behind, following) = _ahead(reader)
    parted = behind.kind == "number" and following.text in reader.context.units
    return bool(found) and (behind.kind == "end" or behind.text in SEPARATORS or parted)


def _ahead(reader: Reader) -> tuple[Unit, list[Token], list[Token]]:
    """Reads a unit without consuming it. Returns it, its tokens and the two tokens after it; an empty unit if none can
    be read."""
    restore, start, tokens = reader.saved(), reader.index, list(reader.tokens)
    try:
        found = unit(reader)
        written = tokens[start : reader.index - len(reader.tokens) + len(tokens)]
        return found, written, reader.tokens[reader.index : reader.index + 2]
    except GrammarError:
        return (), [], list(ENDS[:2])
    finally:
        restore()


def _is_unit_fraction(reader: Reader) -> bool:
    r"""True if a fraction comes next that is the unit of the value before it, such as `\frac{\text{km}}{\text{h}}`."""
    if reader.index == 0 or not reader.at("\\frac") or reader.peek().text != "{":
        return False
    first, before = reader.peek(2), reader.peek(-1)
    if not (first.kind == "text" or (first.kind == "word" and first.text in reader.context.units)):
        return False
    if before.kind != "number" and before.text not in (")", "}"):
        return False
    found, written, (behind, _) = _ahead(reader)
    if not found or not (behind.kind == "end" or behind.text in SEPARATORS):
        return False
    if any(token.kind == "word" and token.text in reader.variables for token in written):
        return False
    if reader.context.wants_unit or all(token.kind in ("text", "mark", "number") for token in written):
        return True
    return any(len(name) > 1 for name, _ in found) or (not reader.token.glued and found in RATES)


# -- quantities


def measured(reader: Reader, node: Expression) -> Value:
    """Combines an expression with the unit that comes next into a quantity; returns it alone if no unit follows."""
    inside = node.of if isinstance(node, Negation) else node
    if isinstance(inside, Product) and inside.factors[-1] is DEGREE:
        of = inside.factors[0]
        scaled = reader.token.kind in ("word", "text") and reader.token.text in SCALES
        name = SCALES[reader.take().text] if scaled else "degree"
        return Quantity(Negation(of) if isinstance(node, Negation) else of, ((name, 1),))
    if is_unit(reader, reader.token) or _is_unit_fraction(reader):
        read = unit(reader)
        if isinstance(node, Number) and node.value.denominator == 1:
            node = _smaller_parts(reader, node.value, read) or node
        return Quantity(node, read)
    return Scalar(node)


def base_number(reader: Reader) -> Value:
    """Reads a token of digits with their base, such as `101_2`."""
    token = reader.take()
    return BaseNumber(token.text, int(token.value))


def _smaller_parts(reader: Reader, whole: Fraction, first: Unit) -> Number | None:
    """Reads the remaining parts of `5 ft 3 in`, and returns the total in the first unit. Returns None if no further
    part follows. Raises GrammarError for a part that is not smaller, or of another dimension."""
    if not _at_number(reader) or len(first) != 1:
        return None
    total, written = whole, f"{whole} {first[0][0]}"
    factor, _, dimension = _known(reader, first)
    last = factor
    while _at_number(reader):
        amount = reader.take()
        smaller = unit(reader)
        size, _, kind = _known(reader, smaller)
        if kind != dimension or not dimension or size >= last or amount.value * size >= last:
            raise reader.error("parts of a quantity that do not belong together")
        total += amount.value * size / factor
        last = size
        written += f" {amount.text} {smaller[0][0]}"
    return Number(total, written)


def _at_number(reader: Reader) -> bool:
    return reader.token.kind == "number"


def _known(reader: Reader, read: Unit) -> tuple[Fraction, int, Dimension]:
    try:
        return combined(read)
    except UnitError as error:
        raise reader.error(str(error)) from error


# -- units


def unit(reader: Reader) -> Unit:
    """Reads a unit of measurement to its end, such as `km/h`. Raises GrammarError for invalid or ambiguous units."""
    if _is_noun(reader, reader.token):
        return ((reader.take().text, 1),)
    spread(reader)
    if reader.at("\\frac"):
        return _unit_fraction(reader)
    atoms: list[tuple[str, int]] = []
    below = divided = False
    while True:
        spread(reader)
        if below and reader.accept("("):
            atoms += [(name, -power) for name, power in reader.nested(lambda: unit(reader))]
            reader.expect(")")
        else:
            name, power = _atom(reader)
            atoms.append((name, -power if below else power))
        if len(atoms) > MAX_ATOMS:
            raise reader.error("a unit of too many parts")
        spread(reader)
        below = False
        if reader.at("/") or reader.token.text == "per":
            reader.take()
            below = divided = True
        elif reader.at("*", "\\times") or _is_atom(reader):
            if divided:
                raise reader.error("a unit whose denominator is ambiguous: use brackets or powers")
            reader.accept("*", "\\times")
        else:
            return tuple(atoms)


def _unit_fraction(reader: Reader) -> Unit:
    r"""Reads a unit that is written as one fraction, `\frac{m}{s^2}`."""
    reader.take()
    found: list[tuple[str, int]] = []
    for sign in (1, -1):
        reader.expect("{")
        found += [(name, sign * power) for name, power in reader.nested(lambda: unit(reader))]
        reader.expect("}")
    if len(found) > MAX_ATOMS:
        raise reader.error("a unit of too many parts")
    return tuple(found)


def spread(reader: Reader) -> None:
    r"""Replaces the current token, if it is upright text such as `\text{ m/s}`, by the tokens of its content."""
    token = reader.token
    if token.kind == "text" and token.text not in reader.context.units:
        inside = ANSWERS.tokens(plain(token.text.replace("\\ ", " ")))[: -len(ENDS)]
        if not inside or any(part.kind == "text" for part in inside):
            raise reader.error("a text that is not a unit")
        if reader.peek().kind == "number":
            reader.peek().glued = False
        reader.tokens[reader.index : reader.index + 1] = inside


def _is_atom(reader: Reader) -> bool:
    token = reader.token
    known = token.text in reader.context.units or token.text in BEFORE
    return (token.kind in ("word", "unit", "text") and known) or _with_sign(reader) is not None


def _atom(reader: Reader) -> tuple[str, int]:
    signed = _with_sign(reader)
    if signed is not None:
        reader.index += signed[1] - 1
    token = reader.take()
    if signed is not None:
        token = Token("unit", signed[0])
    power = 1
    if token.text in BEFORE and token.kind == "word":
        power = BEFORE[token.text]
        token = reader.take()
    if token.kind == "mark" and token.text == "\\degree":
        follows = reader.token.kind in ("word", "text") and reader.token.text in SCALES
        return (SCALES[reader.take().text] if follows else "degree"), power
    if token.kind not in ("word", "unit", "text") or token.text not in reader.context.units:
        raise reader.error(f"{token.text[:20]!r} is not a known unit")
    if reader.token.kind == "word" and reader.token.text in AFTER:
        power *= AFTER[reader.take().text]
    elif reader.accept("^"):
        power *= _unit_power(reader)
    elif reader.token.integer and reader.token.glued and reader.token.text in ("2", "3") and token.kind == "word":
        power *= int(reader.take().text)
    return token.text, power


def _unit_power(reader: Reader) -> int:
    braces = reader.accept("{")
    negative = reader.accept("-")
    token = reader.take()
    if not token.integer or not 0 < token.value <= MAX_POWER:
        raise reader.error("a power of a unit that is not a small whole number")
    if braces:
        reader.expect("}")
    return -int(token.value) if negative else int(token.value)
