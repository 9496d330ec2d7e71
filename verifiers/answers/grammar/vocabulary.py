"""Words and commands of both languages. Everything else is refused.

The plain language is for specs, predicates and conditions; answers have more. `log` without a base is the natural
logarithm, as in Python and in SymPy; `log(a, b)` has base b.
"""

from __future__ import annotations

import re

from verifiers.answers.grammar.nodes import Constant


def _named(words: str) -> frozenset[str]:
    return frozenset(re.findall(r"\S+", words))


GREEK_NAMES = _named(
    """alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau upsilon phi chi psi omega
    Gamma Delta Theta Lambda Xi Sigma Upsilon Phi Psi Omega Pi ell hbar"""
)
PI = Constant("pi")
CONSTANTS: dict[str, Constant] = {"pi": PI, "e": Constant("e"), "i": Constant("i")}
PLAIN_CONSTANTS = CONSTANTS | {"E": Constant("e"), "I": Constant("i")}
NOT_VALUES = frozenset({"nan", "inf", "infinity", "oo", "zoo", "infty", "None", "undefined"})

FUNCTIONS: dict[str, tuple[str, int, int]] = {
    **{name: (name, 1, 1) for name in ("sqrt", "cbrt", "abs", "exp", "ln", "sin", "cos", "tan", "cot", "sec", "csc")},
    **{name: (name, 1, 1) for name in ("sinh", "cosh", "tanh", "floor", "asin", "acos", "atan", "factorial")},
    "arcsin": ("asin", 1, 1), "arccos": ("acos", 1, 1), "arctan": ("atan", 1, 1),
    "ceil": ("ceil", 1, 1), "ceiling": ("ceil", 1, 1), "log": ("log", 1, 2), "binomial": ("binomial", 2, 2),
    "gcd": ("gcd", 2, 50), "lcm": ("lcm", 2, 50), "min": ("min", 1, 50), "max": ("max", 1, 50),
}  # fmt: skip
"""Functions of the plain language. Written name: (name in the tree, fewest arguments, most arguments)."""
BARE = frozenset({"sin", "cos", "tan", "cot", "sec", "csc", "ln", "log", "sinh", "cosh", "tanh", "exp"})
"""Functions whose argument may stand without brackets."""
PLAIN_WORDS = _named("pi sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh exp ln log gcd min max")
r"""Words that may also be commands, such as `\sin`."""
PLAIN_MARKS = {
    "frac": "\\frac", "dfrac": "\\frac", "tfrac": "\\frac", "sqrt": "\\sqrt",
    "binom": "\\binom", "dbinom": "\\binom", "tbinom": "\\binom", "cdot": "*", "times": "*", "div": "/",
    "lfloor": "\\lfloor", "rfloor": "\\rfloor", "lceil": "\\lceil", "rceil": "\\rceil",
    "le": "<=", "leq": "<=", "ge": ">=", "geq": ">=", "lt": "<", "gt": ">", "ne": "!=", "neq": "!=",
    "land": "and", "lor": "or", "lnot": "not", "neg": "not",
}  # fmt: skip
VARIANTS = {"varepsilon": "epsilon", "varphi": "phi", "vartheta": "theta", "varrho": "rho", "varsigma": "sigma"}
FUNCTION_COMMANDS = _named(
    """sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh coth exp ln log lg gcd lcm min max arg Re Im cis
    sgn arccot arcsec arccsc arcsinh arccosh arctanh arsinh arcosh artanh"""
)
SKIPPED = _named(
    """displaystyle textstyle left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr middle quad
    qquad thinspace limits nolimits tiny scriptsize footnotesize small normalsize large Large LARGE huge Huge
    scriptstyle scriptscriptstyle bf rm it hfill"""
)
"""Commands for spacing and size only."""
OF_MATRICES = {"det": "det", "tr": "tr", "Tr": "tr", "rank": "rank", "dim": "dim"}
"""Numeric properties of a matrix or space that is given by its letter only."""
MARKS = {
    **PLAIN_MARKS,
    "cfrac": "\\frac", "nicefrac": "\\frac", "sfrac": "\\frac", "ast": "\\ast", "leqslant": "<=", "geqslant": ">=",
    "surd": "\\surd", "times": "\\times",
    "pm": "\\pm", "mp": "\\mp", "cup": "\\cup", "cap": "\\cap", "setminus": "\\setminus", "smallsetminus": "\\setminus",
    "backslash": "\\setminus", "in": "\\in", "emptyset": "\\emptyset", "varnothing": "\\emptyset", "infty": "\\infty",
    "langle": "\\langle", "rangle": "\\rangle", "lvert": "|open", "rvert": "|close", "mid": "\\mid", "vert": "|",
    "colon": ":", "int": "\\int", "sum": "\\sum", "prod": "\\prod", "lim": "\\lim", "to": "\\to",
    "rightarrow": "\\to", "degree": "\\degree", "prime": "'", "lbrace": "\\{", "rbrace": "\\}", "lbrack": "[",
    "rbrack": "]", "wedge": "\\land", "vee": "\\lor", "land": "\\land", "lor": "\\lor",
    "ldots": "\\dots", "dots": "\\dots", "cdots": "\\dots",
    "dotsc": "\\dots", "approx": "\\approx", "equiv": "\\equiv", "pmod": "\\pmod",
    "over": "\\over", "choose": "\\choose", "underline": "\\group", "overline": "\\conj", "bar": "\\conj",
    **{name: f"\\of {function}" for name, function in OF_MATRICES.items()},
    "angle": "\\angle", "measuredangle": "\\angle", "top": "\\top", "intercal": "\\top", "bigcup": "\\cup",
}  # fmt: skip
SAME_MARK = {"**": "^", "==": "=", "=<": "<="}
UNIT_COMMANDS = {"euro": "€", "pounds": "£", "cents": "cents", "yen": "¥", "rupee": "₹", "AA": "angstrom"}
TEXT_STYLES = ("text", "textrm", "textnormal", "textup", "textbf", "textit", "mbox")
BOLD_STYLES = ("mathbf", "bm", "boldsymbol", "bold")
STYLES = (*TEXT_STYLES, *BOLD_STYLES, "mathrm", "mathit", "mathsf", "mathop", "operatorname")
ENVIRONMENTS = ("pmatrix", "bmatrix", "vmatrix", "Bmatrix", "matrix", "smallmatrix", "array", "cases")
ARROWS = _named(
    """implies Rightarrow Longrightarrow iff Leftrightarrow Longleftrightarrow leftrightarrow longrightarrow mapsto
    longmapsto rightleftharpoons vdash models oplus"""
)
r"""Commands refused by name; `\to` is read in limits only."""
NAMES = frozenset({"pH", "pOH", "pK", "pKa", "KE", "PE"})
"""Quantities of several letters, before an equals sign or with a subscript; elsewhere the letters are a product."""
DEGREE_WORDS = frozenset({"degree", "degrees", "deg"})
BASES = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
         "twelve": 12, "sixteen": 16}  # fmt: skip

EXTENDED: dict[str, tuple[str, int, int]] = {
    **FUNCTIONS,
    **{name: (name, 1, 1) for name in ("coth", "sech", "csch", "acot", "asec", "acsc", "asinh", "acosh", "atanh")},
    **{name: (name, 1, 1) for name in ("sign", "re", "im", "conj", "arg")},
    "arccot": ("acot", 1, 1), "arcsec": ("asec", 1, 1), "arccsc": ("acsc", 1, 1),
    "arcsinh": ("asinh", 1, 1), "arccosh": ("acosh", 1, 1), "arctanh": ("atanh", 1, 1),
    "arsinh": ("asinh", 1, 1), "arcosh": ("acosh", 1, 1), "artanh": ("atanh", 1, 1),
    "cis": ("cis", 1, 1),
    "sgn": ("sign", 1, 1), "Re": ("re", 1, 1), "Im": ("im", 1, 1), "lg": ("lg", 1, 1), "comb": ("binomial", 2, 2),
}  # fmt: skip
"""Functions of answers, in the same format."""
INVERSES = {
    "sin": "asin", "cos": "acos", "tan": "atan", "cot": "acot", "sec": "asec", "csc": "acsc",
    "sinh": "asinh", "cosh": "acosh", "tanh": "atanh",
}  # fmt: skip
WIDE_BARE = BARE | {"lg", "coth", "arcsin", "arccos", "arctan", "arccot", "arg", "sgn", "Re", "Im", "cis"}
CALLED = frozenset("fghFGH") | {"phi", "psi", "zeta", "Gamma"}
"""Letters that are functions before a bracket."""
WORD_PARTS = re.compile("sin|cos|tan|sec|csc|cot|log|ln|exp|sqrt|pi|lim|max|min|inf|nan|None|det|mod|gcd|lcm")
"""Substrings of words that are not products of letters."""

BEFORE = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
"""Words before a unit, with its power."""
AFTER = {"squared": 2, "cubed": 3}
SCALES = {"C": "degC", "F": "degF", "Celsius": "degC", "celsius": "degC", "Fahrenheit": "degF", "fahrenheit": "degF"}
"""Letters and words after a degree sign."""
SHORT_WORDS = _named(
    "no ok up we he it is on in to so go me my do if of or as at an am by us ii iii iv vi vii viii ix xi"
)
"""Short English words that are not products of letters if they stand alone."""
CUSTOMARY = re.compile("x?y?z?|x*y*z*|a*b*c*|a?b?c?d?|p?q?r?s?|m?n?|u?v?w?|m?g?h?|k?q?")
"""Products of letters in customary order; anything else is a word if it stands alone or is long."""
LARGE_NUMBERS = {
    "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12,
}  # fmt: skip
"""Number words after digits, `1.5 million`; a billion is short scale."""
