r"""Numerals in digits with separators: the only reader of them, for answers and for checklists.

| written | value |
|---|---|
| `1234567.5`, `.5` | a point before decimals |
| `1,234,567.5`, `1'234'567.5`, `1 234 567.5` | one separator between all groups of three digits |
| `1.234.567,5`, `1 234 567,5`, `1'234,5`, `1234567,00` | the same with a comma before decimals |
| `12,34,567.5` | groups of two digits before the last three |

A blank may be narrow, `~` or LaTeX's `\,`; `{,}` and `,\!` are commas that never separate two numbers; checklists also
read `1_234`. Groups begin without a zero. Nothing else is a numeral.

Two readings, for which `decimals` or the expected answer decides: `1,234` and `1.234` (thousands, or three decimals),
`3,5` (a decimal, or two numbers), `1 234` (thousands, or two numbers), `10,20,300` and `1.234,5` (one number, or
several). Invariant: pure; a list of one text is one number, a longer one is several numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Literal

from verifiers.answers.grammar.errors import GrammarError

Decimals = Literal["point", "comma", ""]
"""Decimal separator; empty if unknown."""
Commas = Literal["group", "decimal", "separate"]
"""Meaning of a comma between digits outside brackets. `group`: thousands if the groups fit, else a separator.
`decimal`: one number is expected, so never a separator if the text can be one number. `separate`: always a separator.
Within brackets a comma separates, unless semicolons do."""

THIN = "\u2007"
"""Normalised blank within a number; it separates thousands."""
QUOTE = "'"
SEPARATED = rf"\d+(?:[.,{QUOTE}{THIN}_]\d+|\x20\d{{3}}(?!\d))*"
SIGNS = re.compile(rf"[.,{QUOTE}{THIN}_\x20]")
THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
INDIAN = re.compile(r"[1-9]\d?(?:,\d{2})*,\d{3}")
MAX_DIGITS = 2_000
"""Maximum characters of one written number."""

JOINED = re.compile(r"\{,\}|,\\!")
LATEX_BLANK = re.compile(r"\\[,;: ]|~")
WRITTEN = re.compile(
    rf"""(?P<opening>\\(?:\{{|langle|lbrace|lbrack)|[(\[])|(?P<closing>\\(?:\}}|rangle|rbrace|rbrack)|[)\]])
    |(?<![\w.,'^])(?P<number>[0-9]+(?:(?:{JOINED.pattern}|{LATEX_BLANK.pattern.replace(" ", chr(92) + " ")}|[.,'])[0-9]+
    |\x20[0-9]{{3}}(?![0-9]|\s*/))+)(?![0-9_])""",
    re.VERBOSE,
)
TAKES_DIGITS = re.compile(r"(?:\\(?:[cdt]?frac|sqrt|binom)|[_^])\s*$")
"""What takes single digits before a blank: `\\frac 1 234`."""
RECURRING = re.compile(r"(?<![\w.,'^])([0-9]+),(?=\\(?:overline|bar|dot)\b|\([0-9]+\))")
SPACED = re.compile(r"(?<=[0-9]),\s+(?=[0-9]{3}(?![0-9]))")
BEFORE_I = re.compile(r"(?<![0-9])([0-9]+)/([0-9]+)\s*i(?![A-Za-z(])")
DOUBTFUL = re.compile(r"[0-9](?:[.,'~·⋅\s\\{]|/[0-9]+\s*i)")
DOT_PRODUCT = re.compile(r"(?<=[0-9])\s*(?:·|⋅|\\cdot)\s*(?=[0-9])")


def readings(core: str, decimals: Decimals) -> list[list[str]]:
    """Returns the possible readings of a numeral, the likeliest first: each one number in plain digits, or several."""
    signs, parts = SIGNS.findall(core), SIGNS.split(core)
    if not signs or core.startswith("."):
        return [[core]]
    last, head = signs[-1], parts[0]
    together, apart = ["".join(parts)], parts
    grouped = _groups(parts)
    if len(set(signs)) > 1:
        whole = core[: -len(parts[-1]) - 1]
        if last not in (".", ",") or last in signs[:-1] or len(set(signs[:-1])) > 1:
            return [apart]
        if not (_groups(parts[:-1]) or INDIAN.fullmatch(whole)):
            return [apart]
        value = f"{''.join(parts[:-1])}.{parts[-1]}"
        return [[value], [*parts[:-2], f"{parts[-2]}.{parts[-1]}"]] if " " in signs else [[value]]
    if last == " ":
        certain = any(part.startswith("0") for part in parts[1:])
        return [together, *([] if certain else [apart])] if grouped else [apart]
    if last in (THIN, QUOTE, "_"):
        return [together] if grouped else [apart]
    if len(signs) > 1:
        return [together] if grouped or (last == "," and INDIAN.fullmatch(core)) else [apart]
    decimal = [f"{head}.{parts[1]}"]
    if not grouped:
        return [decimal] if last == "." or decimals == "comma" else [decimal, apart]
    if last == ".":
        return {"comma": [together], "point": [decimal], "": [decimal, together]}[decimals]
    return {"comma": [decimal], "point": [together], "": [together, decimal]}[decimals]


def _groups(parts: list[str]) -> bool:
    return 1 <= len(parts[0]) <= 3 and parts[0][0] != "0" and all(len(part) == 3 for part in parts[1:])


def plain_digits(text: str, commas: Commas, *, expected: Fraction | None = None, ends: bool = False) -> str:
    """Rewrites the numerals of an answer in plain digits with a point. Raises GrammarError for one that may be several
    numbers: `1.234,5` unless one is expected, `5,0` for 5. `expected`: size of the number that is expected, if known;
    `ends`: a separator follows the text."""
    everywhere = commas == "decimal" and ";" in text
    if commas == "decimal" and "," in text:
        text = RECURRING.sub(r"\1.", text)
    depth = int(text.startswith("{"))
    pieces, at = [], 0
    for match in WRITTEN.finditer(text):
        if match["number"] is None:
            depth += 1 if match["opening"] else -1
            continue
        here = commas if everywhere or not depth else "separate"
        if " " in match["number"] and TAKES_DIGITS.search(text[: match.start()][-12:]):
            continue
        pieces += [text[at : match.start()], _one(match["number"], here, expected, alone=everywhere, ends=ends)]
        at = match.end()
    return "".join([*pieces, text[at:]])


def _one(written: str, commas: Commas, expected: Fraction | None, *, alone: bool, ends: bool) -> str:
    core, joined = _core(written)
    if len(core) > MAX_DIGITS:
        return written
    may_separate = "," in core and not joined
    if may_separate and commas == "separate":
        return ",".join(_one(piece, commas, None, alone=alone, ends=ends) for piece in written.split(","))
    found = readings(core, "point")
    values = [reading[0] for reading in found if len(reading) == 1]
    if not values:
        return written if not may_separate else _one(written, "separate", None, alone=alone, ends=ends)
    if not may_separate or THOUSANDS.fullmatch(core):
        return values[0]
    before, _, behind = core.partition(",")
    simple = (before + behind).isdigit()
    if commas == "group":
        if simple:
            return written
        raise GrammarError(f"{written[:40]} may be one number or several: write {values[0][:40]}, or blanks between")
    # `1000,00` can only be one number: nobody lists `00`.
    sides = () if not simple or alone or behind[0] == "0" < behind else (before,) if before == "0" else (before, behind)
    if sides and (behind == "0" or expected in [Fraction(side) for side in sides]):
        raise GrammarError("a comma that may separate two answers: write a decimal point")
    if ends:
        raise GrammarError("commas within and behind a number: write a decimal point")
    return values[0]


def _core(written: str) -> tuple[str, bool]:
    """Returns a numeral with one character for each separator, and True if LaTeX marks its commas as no separators."""
    joined = JOINED.sub(",", written)
    return LATEX_BLANK.sub(THIN, joined), joined != written


def other_readings(text: str, *, points: bool = True) -> Iterator[str]:
    """Yields an answer's text with its numerals written out as readers of other conventions take them: a comma as the
    decimal separator, commas within brackets or before a blank as groups, commas as separators, a raised dot as a
    point, `1/2i` as 1/(2i). `points`: also if only points are in doubt."""
    seen = {text}
    if not (DOUBTFUL.search(text) if points else "," in text):
        return
    for candidate in (
        _converted(text, "comma"),
        _converted(SPACED.sub(",", text), "point"),
        re.sub(r"(?<=[0-9]),(?=[0-9])", ", ", text),
        DOT_PRODUCT.sub(".", text),
        BEFORE_I.sub(r"\1/(\2i)", text),
    ):
        if candidate not in seen:
            seen.add(candidate)
            yield candidate


def _converted(text: str, decimals: Decimals) -> str:
    """Rewrites every numeral of a text that is one number by a convention; leaves the others."""

    def value(match: re.Match[str]) -> str:
        core = _core(match["number"] or "")[0]
        first = readings(core, decimals)[0] if match["number"] and len(core) <= MAX_DIGITS else []
        return first[0] if len(first) == 1 else match.group()

    return WRITTEN.sub(value, text)
