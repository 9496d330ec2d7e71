"""Characters beyond ASCII allowed in answers: mathematical signs, each with its LaTeX form.

A letter that only looks like another (Cyrillic х, Greek capital Α) is refused, as are invisible and direction-changing
characters: the text read is the text a person sees. Full-width and mathematical letters are folded (NFKC). Other Latin
letters are kept, so that names can be words; mathematics never contains them.
"""

from __future__ import annotations

import re
import unicodedata

from verifiers.answers.grammar.errors import GrammarError

GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "ς": "varsigma",
    "σ": "sigma", "τ": "tau", "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma",
    "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi",
    "Ω": "Omega", "ϕ": "phi", "ϑ": "theta", "ϵ": "epsilon", "µ": "mu",
}  # fmt: skip
"""Greek letters that do not look like Latin ones; excludes omicron and capitals such as Α."""

SIGNS = {
    "\u2212": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "∗": "*", "÷": r"\div ", "⁄": "/",
    "∕": "/", "√": r"\surd ", "∛": r"\surd[3]", "≤": r"\le ", "≥": r"\ge ", "⩽": r"\le ", "⩾": r"\ge ",
    "≠": r"\ne ", "∞": r"\infty ", "∪": r"\cup ", "∩": r"\cap ", "∖": r"\setminus ", "∈": r"\in ", "∉": r"\notin ",
    "∅": r"\emptyset ", "±": r"\pm ", "∓": r"\mp ", "°": r"^\circ ", "′": "'", "∣": "|", "⟨": r"\langle ",
    "⟩": r"\rangle ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ", "∧": r"\land ",
    "∨": r"\lor ", "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℚ": r"\mathbb{Q}", "ℕ": r"\mathbb{N}", "ℂ": r"\mathbb{C}",
    "∫": r"\int ", "≈": r"\approx ", "≡": r"\equiv ", "…": r"\dots ", "⋯": r"\dots ",
    "∑": r"\sum ", "∏": r"\prod ", "€": r"\euro ", "£": r"\pounds ", "¢": r"\cents ", "¥": r"\yen ",
    "Å": r"\AA ", "∠": r"\angle ",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}",
    "⅕": r"\frac{1}{5}", "⅖": r"\frac{2}{5}", "⅗": r"\frac{3}{5}", "⅘": r"\frac{4}{5}", "⅙": r"\frac{1}{6}",
    "⅚": r"\frac{5}{6}", "⅛": r"\frac{1}{8}", "⅜": r"\frac{3}{8}", "⅝": r"\frac{5}{8}", "⅞": r"\frac{7}{8}",
    "\u2018": "'", "\u2019": "'", "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u2002": " ", "\u2003": " ",
    **{letter: rf"\{name} " for letter, name in GREEK.items()},
}  # fmt: skip

RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱˣ", "0123456789+-()nix", strict=True))
LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉ₙₖₓ", "0123456789nkx", strict=True))
RAISED_RUN = re.compile("[" + "".join(map(re.escape, RAISED)) + "]+")
LOWERED_RUN = re.compile("[" + "".join(map(re.escape, LOWERED)) + "]+")
LEADING_DASH = re.compile(r"(^|[(\[{,=<>])(\s*)\u2013")
FOLDS = ("<font>", "<wide>", "<narrow>", "<noBreak>")


def plain(text: str) -> str:
    """Rewrites every mathematical sign in ASCII or LaTeX. Raises GrammarError, naming a forbidden character."""
    if text.isascii():
        return text
    text = LEADING_DASH.sub(r"\1\2-", text)
    text = RAISED_RUN.sub(lambda run: "^{" + "".join(RAISED[sign] for sign in run.group()) + "}", text)
    text = LOWERED_RUN.sub(lambda run: "_{" + "".join(LOWERED[sign] for sign in run.group()) + "}", text)
    return "".join(character if character.isascii() else _meant(character) for character in text)


def folded(text: str) -> str:
    """Folds full-width and mathematical letters to ASCII. Raises GrammarError for anything else.

    Superscripts and fractions are refused, because folding would change their meaning: `x²` would become `x2`.
    """
    for character in text:
        if not character.isascii() and unicodedata.decomposition(character).partition(" ")[0] not in FOLDS:
            name = unicodedata.name(character, f"U+{ord(character):04X}")
            raise GrammarError(f"contains {name}, which is not plain ASCII mathematics")
    found = unicodedata.normalize("NFKC", text)
    if not found.isascii():
        raise GrammarError("contains characters that are not plain ASCII mathematics")
    return found


def _meant(character: str) -> str:
    sign = SIGNS.get(character)
    if sign is not None:
        return sign
    if unicodedata.decomposition(character).partition(" ")[0] in FOLDS:
        plainer = unicodedata.normalize("NFKC", character)
        if plainer.isascii() or plainer in SIGNS:
            return SIGNS.get(plainer, plainer)
    name = unicodedata.name(character, f"U+{ord(character):04X}")
    if re.match(r"LATIN (SMALL|CAPITAL) LETTER [A-Z]( WITH |$)", name) or character in "ßæœøÆŒØ":
        return unicodedata.normalize("NFC", character)
    raise GrammarError(f"contains {name}, which is not a supported mathematical sign")
