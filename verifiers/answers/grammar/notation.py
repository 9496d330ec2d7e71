"""Tokens of answers: LaTeX and plain mathematics together, by an allow-list of commands. The whole text or a refusal.

Spacing, `\\left`, `\\right`, sizes and dollar signs around formulas leave no token. Numbers are exact: decimals, groups
of thousands, recurring decimals, powers of ten. Where a comma stands between groups of three digits it separates
thousands outside brackets and items within them.
"""

from __future__ import annotations

import re

from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.numerals import based, is_based, number, recurring
from verifiers.answers.grammar.tokens import MAX_CHARACTERS, MAX_TOKENS, Token
from verifiers.answers.grammar.vocabulary import (
    BOLD_STYLES,
    CURRENCIES,
    DEGREE_WORDS,
    ENVIRONMENTS,
    FUNCTION_COMMANDS,
    GREEK_NAMES,
    MARKS,
    SAME_MARK,
    SKIPPED,
    STYLES,
    TEXT_STYLES,
    VARIANTS,
)

GROUPED = r"[1-9][0-9]{0,2}(?:(?:\{,\}|,\\!|\\[,;: ]|~|,)[0-9]{3})+(?![0-9])(?:\.[0-9]+)?"
PATTERN = re.compile(
    rf"""
    (?P<space>(?:[ \t\r\n~]|\\[,;:!\ ])+)
  | (?P<based>[0-9][0-9A-Z]*_(?:\{{(?:[0-9]{{1,2}}|\\text\{{[a-z0-9 ]+\}}\s*[0-9]{{0,2}})\}}|[0-9]{{1,2}}(?![0-9])))
  | (?P<dots>\.\.\.)
  | (?P<grouped>{GROUPED})
  | (?P<recurring>[0-9]*\.[0-9]*(?:\\(?:overline|bar)\s*(?:\{{[0-9]+\}}|[0-9])|\([0-9]+\)
        |(?:\\dot\s*(?:\{{[0-9]\}}|[0-9])[0-9]*){{1,2}}))
  | (?P<number>(?:[0-9]+\.[0-9]+|[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | (?P<comma>\{{,\}})
  | (?P<celsius>\^\s*(?:\{{\s*\\circ\s*\}}|\\circ)\s*(?:[CF](?![A-Za-z])|\\(?:text|mathrm)\{{\s*[CF]\s*\}}))
  | (?P<degree>\^\s*(?:\{{\s*\\circ\s*\}}|\\circ(?![A-Za-z])))
  | \\(?P<style>{"|".join(STYLES)}\*?)\s*(?:\{{(?P<content>(?:[^{{}}]|\{{[^{{}}]*\}})*)\}}|(?P<single>\ [A-Za-z]))
  | \\mathbb\s*(?:\{{(?P<numbers>[NZQRC])\}}|(?P<numbers1>[NZQRC]))
  | \\(?P<accent>vec|hat|bar|overline|tilde|overrightarrow|widehat)
        \s*(?:\{{\s*(?:\\mathbf\s*\{{(?P<bold>[A-Za-z])\}}|(?P<under>\\?[A-Za-z]+))\s*\}}|(?P<under1>[A-Za-z]))
  | \\(?P<begin>begin|end)\s*\{{(?P<environment>{"|".join(ENVIRONMENTS)})\}}(?P<columns>\{{[lcr|]*\}})?
  | (?P<sizes>\\(?:left|right)\s*\|)
  | \\(?P<command>[A-Za-z]+)
  | (?P<row>\\\\(?:\[-?[0-9.]+(?:pt|ex|em|mm|cm)\])?)
  | (?P<escaped>\\[{{}}$%])
  | (?P<word>[A-Za-z]+)
  | (?P<mark>\*\*|==|!=|<=|>=|=<|[-+*/^!%<>=(){{}}\[\]|,_;:&'$])
    """,
    re.VERBOSE | re.ASCII,
)
OPENING = frozenset({"(", "[", "\\{", "\\langle"})
CLOSING = frozenset({")", "]", "\\}", "\\rangle"})


def tokens_of(text: str, *, grouping: bool = True, euler: bool = False) -> list[Token]:
    """All tokens of a text that `characters.plain` has let through, with end marks behind them. Raises GrammarError.

    `grouping`: whether `1,234` outside brackets is one number. `euler`: whether `2e+1` is a sum with Euler's number.
    """
    if len(text) > MAX_CHARACTERS:
        raise TooLargeError(f"longer than {MAX_CHARACTERS} characters")
    tokens: list[Token] = []
    position, depth, end = 0, 0, len(text)
    glued = False
    scan = PATTERN.match
    while position < end:
        match = scan(text, position)
        if match is None:
            raise GrammarError(f"cannot read {text[position : position + 12]!r}", position=len(tokens))
        kind = match.lastgroup
        if kind == "space":
            glued = False
            position = match.end()
            continue
        if kind in FIGURES and _reads_on(kind, match.group(), separate=depth != 0 or not grouping, euler=euler):
            match = SHORT_NUMBER.match(text, position) or match
        token = _token(match, glued)
        position = match.end()
        if token is None:
            continue
        if token.kind == "mark":
            if token.text in OPENING:
                depth += 1
            elif token.text in CLOSING:
                depth -= 1
        if glued and token.integer and token.text[0] == "0" and len(token.text) > 1 and tokens[-1].text == ",":
            raise GrammarError("digits in groups of the wrong size", position=len(tokens))
        tokens.append(token)
        glued = True
        if len(tokens) > MAX_TOKENS:
            raise TooLargeError(f"more than {MAX_TOKENS} signs")
    tokens += ENDS
    return tokens


ENDS = (Token("end", "the end"),) * 3
"""Several, so that looking ahead needs no care."""
UNIT_VECTORS = ("i", "j", "k")
"""Bold, with an arrow or with a hat they are the same three vectors."""
SHORT_NUMBER = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)")
FIGURES = frozenset({"number", "grouped", "based"})


def _reads_on(kind: str, text: str, *, separate: bool, euler: bool) -> bool:
    """Whether only the first digits are the number: the rest of it says something else here."""
    if kind == "grouped":
        return separate and "," in text.replace("{,}", "").replace(",\\!", "")
    if kind == "based":
        return not is_based(text)
    return euler and ("e+" in text or "e-" in text)


def _token(match: re.Match[str], glued: bool) -> Token | None:
    """The token of a match; None for what only spaces or sizes."""
    kind = match.lastgroup
    text = match.group()
    match kind:
        case "number":
            return number(text, glued)
        case "mark":
            return _mark(text, glued)
        case "word":
            if text in DEGREE_WORDS:
                return Token("mark", "\\degree", glued=glued)
            return Token("mark" if text in ("and", "or") else "word", text, glued=glued)
        case "command":
            return _command(match["command"], glued)
        case "grouped":
            return number(re.sub(r"[^0-9.]", "", text), glued)
        case "dots":
            return Token("mark", "\\dots", glued=glued)
        case "comma":
            return Token("mark", "{,}", glued=glued)
        case "recurring":
            return Token("number", text, recurring(text), glued)
        case "based":
            return based(text, glued)
        case "celsius":
            return Token("unit", "degC" if "C" in text.replace("\\circ", "") else "degF", glued=glued)
        case "degree":
            return Token("mark", "\\degree", glued=glued)
        case "content" | "single":
            return _styled(match["style"], (match["content"] or match["single"] or "").strip(), glued)
        case "numbers" | "numbers1":
            return Token("mark", "\\mathbb" + (match["numbers"] or match["numbers1"]), glued=glued)
        case "bold" | "under" | "under1":
            return _accented(match["accent"], match[kind], glued)
        case "environment" | "columns":
            if (match["columns"] is not None) != (match["environment"] == "array" and match["begin"] == "begin"):
                raise GrammarError("an array of columns that cannot be read")
            return Token("mark", f"\\{match['begin']}{{{match['environment']}}}", glued=glued)
        case "sizes":
            return Token("mark", "|open" if "left" in text else "|close", glued=glued)
        case "row":
            return Token("mark", "\\\\", glued=glued)
        case "escaped":
            return Token("unit", text[1], glued=glued) if text[1] in "$%" else Token("mark", text, glued=glued)
    raise GrammarError(f"cannot read {text[:20]!r}")


def _mark(text: str, glued: bool) -> Token:
    if text in "$%":
        return Token("unit", text, glued=glued)
    return Token("mark", SAME_MARK.get(text, text), glued=glued)


def _command(name: str, glued: bool) -> Token | None:
    if name in SKIPPED:
        return None
    if name in MARKS:
        return Token("mark", MARKS[name], glued=glued)
    if name in FUNCTION_COMMANDS or name == "pi":
        return Token("word", name, glued=glued)
    if name in GREEK_NAMES or name in VARIANTS:
        return Token("symbol", VARIANTS.get(name, name), glued=glued)
    if name in CURRENCIES:
        return Token("unit", CURRENCIES[name], glued=glued)
    raise GrammarError(f"\\{name[:20]} is not in the language")


def _styled(style: str, content: str, glued: bool) -> Token:
    if style in BOLD_STYLES and re.fullmatch("[A-Za-z]", content):
        return Token("symbol", f"{'unit' if content in UNIT_VECTORS else 'bold'} {content}", glued=glued)
    if style not in TEXT_STYLES:
        if content in FUNCTION_COMMANDS or content == "pi":
            return Token("word", content, glued=glued)
        if style == "mathit" and re.fullmatch("[A-Za-z]+", content):
            return Token("word", content, glued=glued)
    if content in ("and", "or"):
        return Token("mark", content, glued=glued)
    if content in DEGREE_WORDS:
        return Token("mark", "\\degree", glued=glued)
    return Token("text", content, glued=glued)


def _accented(accent: str, under: str, glued: bool) -> Token:
    if under in ("\\imath", "\\jmath"):
        under = under[1]
    name = under.removeprefix("\\")
    if under.startswith("\\") and name not in GREEK_NAMES:
        raise GrammarError(f"{under[:20]} is not a symbol")
    if len(name) > 4 and name not in GREEK_NAMES:
        raise GrammarError(f"\\{accent} over a word")
    accent = {"overrightarrow": "vec", "widehat": "hat"}.get(accent, accent)
    if name in UNIT_VECTORS and accent in ("vec", "hat"):
        accent = "unit"
    return Token("symbol", f"{accent} {name}", glued=glued)
