"""Tokens of answers: LaTeX and plain mathematics together, by an allow-list of commands. The whole text or a refusal.

Spacing, `\\left`, `\\right`, sizes and dollar signs around formulas leave no token. Numbers are exact: decimals, groups
of thousands, recurring decimals, powers of ten. Where a comma stands between groups of three digits it separates
thousands outside brackets and items within them.
"""

from __future__ import annotations

import re
from fractions import Fraction

from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.tokens import (
    COMMANDS,
    MAX_CHARACTERS,
    MAX_DIGITS,
    MAX_SCIENTIFIC,
    MAX_TOKENS,
    Token,
)

GREEK_NAMES = frozenset(
    """alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho varrho sigma
    varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Upsilon Phi Psi Omega Pi ell
    hbar""".split()
)
FUNCTION_COMMANDS = frozenset(
    """sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh coth exp ln log lg gcd lcm min max arg det Re Im
    sgn arccot arcsec arccsc arcsinh arccosh arctanh arsinh arcosh artanh""".split()
)
VARIANTS = {"varepsilon": "epsilon", "varphi": "phi", "vartheta": "theta", "varrho": "rho", "varsigma": "sigma"}
MARKS = {
    **{name: text for name, (kind, text) in COMMANDS.items() if kind == "mark" and name != "circ"},
    "cfrac": "\\frac", "ast": "*", "leqslant": "<=", "geqslant": ">=", "surd": "\\surd",
    "pm": "\\pm", "mp": "\\mp", "cup": "\\cup", "cap": "\\cap", "setminus": "\\setminus", "smallsetminus": "\\setminus",
    "backslash": "\\setminus", "in": "\\in", "emptyset": "\\emptyset", "varnothing": "\\emptyset", "infty": "\\infty",
    "langle": "\\langle", "rangle": "\\rangle", "lvert": "|open", "rvert": "|close", "mid": "\\mid", "vert": "|",
    "colon": ":", "int": "\\int", "sum": "\\sum", "prod": "\\prod", "lim": "\\lim", "to": "\\to",
    "rightarrow": "\\to", "degree": "\\degree", "prime": "'", "lbrace": "\\{", "rbrace": "\\}", "lbrack": "[",
    "rbrack": "]", "wedge": "and", "vee": "or", "ldots": "\\dots", "dots": "\\dots", "cdots": "\\dots",
}  # fmt: skip
CURRENCIES = {"euro": "€", "pounds": "£", "cents": "cents", "yen": "¥"}
SKIPPED = frozenset(
    """displaystyle textstyle left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr middle quad
    qquad thinspace limits nolimits""".split()
)
TEXTS = "text|textrm|textnormal|textup|textbf|textit|mbox|mathrm|mathbf|mathit|mathsf|mathop|operatorname\\*?|bm|boldsymbol|bold"
ENVIRONMENTS = "pmatrix|bmatrix|vmatrix|Bmatrix|matrix|smallmatrix|array"
DEGREE_WORDS = frozenset({"degree", "degrees", "deg"})

GROUPED = r"[1-9][0-9]{0,2}(?:(?:\{,\}|,\\!|\\[,;: ]|~|,)[0-9]{3})+(?![0-9])(?:\.[0-9]+)?"
PATTERN = re.compile(
    rf"""
    (?P<space>(?:[ \t\r\n~]|\\[,;:!\ ])+)
  | (?P<based>[0-9][0-9A-Z]*_(?:\{{(?:[0-9]{{1,2}}|\\text\{{[a-z]+\}})\}}|[0-9]{{1,2}}(?![0-9])))
  | (?P<grouped>{GROUPED})
  | (?P<recurring>[0-9]*\.[0-9]*(?:\\(?:overline|bar)\s*(?:\{{[0-9]+\}}|[0-9])|\([0-9]+\)
        |(?:\\dot\s*(?:\{{[0-9]\}}|[0-9])[0-9]*){{1,2}}))
  | (?P<number>(?:[0-9]+\.[0-9]+|[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | (?P<comma>\{{,\}})
  | (?P<celsius>\^\s*(?:\{{\s*\\circ\s*\}}|\\circ)\s*(?:[CF](?![A-Za-z])|\\(?:text|mathrm)\{{\s*[CF]\s*\}}))
  | (?P<degree>\^\s*(?:\{{\s*\\circ\s*\}}|\\circ(?![A-Za-z])))
  | \\(?P<style>{TEXTS})\s*(?:\{{(?P<content>(?:[^{{}}]|\{{[^{{}}]*\}})*)\}}|(?P<single>\ [A-Za-z]))
  | \\mathbb\s*(?:\{{(?P<numbers>[NZQRC])\}}|(?P<numbers1>[NZQRC]))
  | \\(?P<accent>vec|hat|bar|overline|tilde|overrightarrow|widehat)\s*(?:\{{\s*(?P<under>\\?[A-Za-z]+)\s*\}}|(?P<under1>[A-Za-z]))
  | \\(?P<begin>begin|end)\s*\{{(?P<environment>{ENVIRONMENTS})\}}(?P<columns>\{{[lcr|]*\}})?
  | (?P<sizes>\\(?:left|right)\s*\|)
  | \\(?P<command>[A-Za-z]+)
  | (?P<row>\\\\)
  | (?P<escaped>\\[{{}}$%])
  | (?P<word>[A-Za-z]+)
  | (?P<mark>\*\*|==|!=|<=|>=|=<|[-+*/^!%<>=(){{}}\[\]|,_;:&'$])
    """,
    re.VERBOSE | re.ASCII,
)
BASES = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
         "twelve": 12, "sixteen": 16}  # fmt: skip
SAME_MARK = {"**": "^", "==": "=", "=<": "<="}
OPENING = frozenset({"(", "[", "\\{", "\\langle"})
CLOSING = frozenset({")", "]", "\\}", "\\rangle"})
PLAIN_DIGITS = re.compile(r"[0-9]+")


def tokens_of(text: str, *, grouping: bool = True, euler: bool = False) -> list[Token]:
    """All tokens of a text that `characters.plain` has let through, with an end mark behind them. Raises GrammarError.

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
        if kind == "number" and euler and PLAIN_DIGITS.match(text, position) and re.search("e[+-]", match.group()):
            match = _shorter(text, position)
        elif (
            kind == "grouped"
            and (depth or not grouping)
            and "," in match.group().replace("{,}", "").replace(",\\!", "")
        ):
            match = _shorter(text, position)
        elif kind == "based" and not _is_based(match.group()):
            match = _shorter(text, position)
        token = _token(match, glued)
        position = match.end()
        if token is None:
            continue
        if token.kind == "mark":
            if token.text in OPENING:
                depth += 1
            elif token.text in CLOSING:
                depth -= 1
        tokens.append(token)
        glued = True
        if len(tokens) > MAX_TOKENS:
            raise TooLargeError(f"more than {MAX_TOKENS} signs")
    tokens.append(Token("end", "the end"))
    return tokens


SHORT_NUMBER = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)")


def _shorter(text: str, position: int) -> re.Match[str]:
    match = SHORT_NUMBER.match(text, position)
    assert match is not None
    return match


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
        case "comma":
            return Token("mark", "{,}", glued=glued)
        case "recurring":
            return Token("number", text, recurring(text), glued)
        case "based":
            return _based(text, glued)
        case "celsius":
            return Token("unit", "degC" if "C" in text.replace("\\circ", "") else "degF", glued=glued)
        case "degree":
            return Token("mark", "\\degree", glued=glued)
        case "content" | "single":
            return _styled(match["style"], (match["content"] or match["single"] or "").strip(), glued)
        case "numbers" | "numbers1":
            return Token("mark", "\\mathbb" + (match["numbers"] or match["numbers1"]), glued=glued)
        case "under" | "under1":
            return _accented(match["accent"], match["under"] or match["under1"], glued)
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
    if name in GREEK_NAMES:
        return Token("symbol", VARIANTS.get(name, name), glued=glued)
    if name in CURRENCIES:
        return Token("unit", CURRENCIES[name], glued=glued)
    raise GrammarError(f"\\{name[:20]} is not in the language")


def _styled(style: str, content: str, glued: bool) -> Token:
    if style in ("mathbf", "bm", "boldsymbol", "bold") and re.fullmatch("[A-Za-z]", content):
        return Token("symbol", f"bold {content}", glued=glued)
    if style not in ("text", "textrm", "textnormal", "textup", "textbf", "textit", "mbox"):
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
    name = under.removeprefix("\\")
    if under.startswith("\\") and name not in GREEK_NAMES:
        raise GrammarError(f"{under[:20]} is not a symbol")
    if len(name) > 4 and name not in GREEK_NAMES:
        raise GrammarError(f"\\{accent} over a word")
    return Token("symbol", f"{'vec' if accent == 'overrightarrow' else accent} {name}", glued=glued)


def number(text: str, glued: bool) -> Token:
    """A token of digits, a decimal point and an exponent of ten at most. Raises TooLargeError."""
    if len(text) > MAX_DIGITS:
        raise TooLargeError(f"a number of more than {MAX_DIGITS} digits")
    if text.isdigit():
        return Token("number", text, Fraction(int(text)), glued, True)
    mantissa, _, exponent = text.upper().partition("E")
    if len(exponent) > 6 or abs(int(exponent or "0")) > MAX_SCIENTIFIC:
        raise TooLargeError(f"a power of ten beyond {MAX_SCIENTIFIC}")
    whole, _, part = mantissa.partition(".")
    value = Fraction(int(whole + part), 10 ** len(part))
    return Token("number", text, value * Fraction(10) ** int(exponent or "0") if exponent else value, glued)


def recurring(text: str) -> Fraction:
    """The value of `0.1\\overline{6}`, `0.1(6)` or `0.1\\dot{6}`: the digits marked repeat for ever."""
    if len(text) > MAX_DIGITS:
        raise TooLargeError(f"a number of more than {MAX_DIGITS} digits")
    whole, _, rest = text.partition(".")
    before, _, marked = rest.partition("(" if "(" in rest else "\\")
    cycle = re.sub(r"[^0-9]", "", marked)
    if marked.startswith("dot") and marked.count("dot") == 1 and not re.fullmatch(r"dot\s*(\{[0-9]\}|[0-9])", marked):
        raise GrammarError("a recurring decimal whose end is not marked")
    if marked.count("dot") == 2 and not re.search(r"dot\s*(\{[0-9]\}|[0-9])$", marked):
        raise GrammarError("a recurring decimal whose end is not marked")
    start = Fraction(int((whole + before) or "0"), 10 ** len(before))
    return start + Fraction(int(cycle), (10 ** len(cycle) - 1) * 10 ** len(before))


def _base(text: str) -> tuple[str, int]:
    digits, _, written = text.partition("_")
    written = written.removeprefix("{").removesuffix("}")
    named = written.removeprefix("\\text{").removesuffix("}")
    return digits, int(written) if written.isdigit() else BASES.get(named, 0)


def _is_based(text: str) -> bool:
    digits, base = _base(text)
    return 2 <= base <= 36 and len(digits) <= 200 and all(int(digit, 36) < base for digit in digits)


def _based(text: str, glued: bool) -> Token:
    digits, base = _base(text)
    return Token("based", digits, Fraction(base), glued)
