"""Finds text that no honest proof needs, before any of it is compiled.

This is the first of several defences and never the only one: the kernel, the axioms and a check out of the submission's
reach decide what a proof rests on. The words here could reach behind those: options that switch the kernel off, code
that runs during elaboration, trust in the compiler. A submission may use what the trusted statement itself uses, unless
it is an outright cheat.

Invariants: pure; linear in the text; comments and strings never count, unless the text can be read in two ways
(`lexer`), in which case everything counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from verifiers.lean.reading.lexer import (
    REST,
    LeanToken,
    TokenKind,
    line_and_column,
    plain,
    turn,
    without_comments,
    without_room,
    words,
)

ELABORATES = "code that runs while Lean elaborates"


def _by_word(by_reason: dict[str, str]) -> dict[str, str]:
    return {word: what for what, listed in by_reason.items() for word in listed.split()}


KEYWORDS = _by_word({
    "states an axiom of its own": "axiom",
    "unsafe code": "unsafe",
    "other code in place of a definition": "implemented_by",
    "a Lean without its own library": "prelude",
    "code that runs when the file is imported": "initialize builtin_initialize",
    ELABORATES: "run_cmd run_elab run_meta run_tac by_elab",
})  # fmt: skip
"""Forbidden words of Lean's grammar: as parts of names or in quotation marks they are harmless."""
NAMES = _by_word({
    "the axiom behind `sorry` by name": "sorryAx",
    "unsafe code": "unsafeCast",
    ELABORATES: "unsafeIO unsafeEIO unsafeBaseIO",
    "a proof of anything, kept for the compiler": "lcProof lcUnreachable",
    "a proof by running compiled code": "reduceBool reduceNat ofReduceBool ofReduceNat trustCompiler",
    "a declaration added behind the elaborator": "addDecl addDeclCore addDeclWithoutChecking",
    "an option that switches the kernel off": "skipKernelTC",
})  # fmt: skip
"""Forbidden last parts of names, regardless of open namespaces."""
CHEATS = KEYWORDS | NAMES
NEEDLESS_KEYWORDS = _by_word({
    "trusts the compiler beside the kernel": "native_decide bv_decide",
    ELABORATES: "elab elab_rules simproc dsimproc simproc_decl dsimproc_decl builtin_simproc register_option "
    "register_builtin_option declare_config_elab declare_command_config_elab plausible slim_check",
    "syntax made by code": "macro macro_rules binder_predicate",
    "syntax of its own": "syntax declare_syntax_cat",
    "reads files": "include_str",
})  # fmt: skip
NEEDLESS_NAMES = _by_word({
    "code for the elaborator": "MetaM CoreM TacticM TermElabM CommandElabM MacroM",
})  # fmt: skip
COMMANDS = {
    **dict.fromkeys(("#eval", "#guard", "#guard_expr", "#sample", "#test", "#html", "#widget"), (ELABORATES, False)),
    "#eval!": (ELABORATES, True),
    "#exit": ("ends the file early", True),
    "#guard_msgs": ("hides what Lean says", True),
}
"""Effect of each command, and True if only a cheat uses it."""
OPTIONS = re.compile(
    r"(?:max\w+|autoImplicit|relaxedAutoImplicit|hygiene|quotPrecheck|simprocs|smartUnfolding|warningAsError|verbose"
    r"|structureDiamondWarning|allowUnsafeReducibility|checkBinderAnnotations|genSizeOf|genSizeOfSpec|genInjectivity"
    r"|printMessageEndPos|showInferredTerminationBy|showTacticInstances|statistics|warn\.(?!sorry\Z)\w+"
    r"|(?:synthInstance|pp|trace|linter|tactic|exponentiation|backward|diagnostics|says|push_cast|aesop|eqns|match|grind"
    r"|profiler|format|Elab|compiler|simp|ring|ring_nf|linarith|nlinarith|polyrith|norm_num|positivity|omega|cbv|doc"
    r"|deriving|inductive|rcases|congr|split|decide|gcongr|field_simp|fun_prop|Mathlib)(?:\.\w+)*)\Z"
)
"""Options that a submission may set: for search, printing, warnings and compilation. None reaches the kernel."""
CHEATING_OPTIONS = re.compile(r"(?:debug|warn|bootstrap|interpreter|experimental|genCtorIdx)(?:\.|\Z)")
ATTRIBUTES = frozenset(
    """simp ext refl symm trans congr gcongr inline always_inline noinline specialize nospecialize macro_inline
    reducible irreducible semireducible instance default_instance class elab_as_elim elab_without_expected_type
    match_pattern norm_cast push_cast coe simps to_additive to_dual mono aesop ematch grind cases_eliminator
    induction_eliminator local scoped fun_prop continuity measurability bound simp_arith seval deprecated inherit_doc
    nolint stacksProject pp_dot pp_nodot rfl recursor eqns irreducible_def reassoc elementwise higher_order
    notation_class field_simps mfld_simps functor_norm monad_norm parity_simps nontriviality push pull expose
    wf_preprocess method_specs suggest_for mk_iff zify_simps qify_simps rify_simps ghost_simps stacks kerodon wikidata
    bool_to_prop implicit_reducible unbox integral_simps""".split()  # noqa: SIM905
)
"""Permitted attributes; none takes code."""
CHEATING_ATTRIBUTES = frozenset(
    ("implemented_by", "extern", "csimp", "init", "builtin_init", "export", "computed_fields")
)
NOTATIONS = frozenset(("notation", "notation3", "infix", "infixl", "infixr", "prefix", "postfix"))
AESOP = re.compile(r"aesop\w*[?!]?\Z")
MOST_OF_AESOP = 300
"""Maximum number of words in one call of aesop."""
MOST_FINDINGS = 10
MOST_ATTRIBUTES = 300
"""Maximum number of words in one list of attributes."""


@dataclass(frozen=True)
class ScreeningFinding:
    word: str
    what: str
    """Description that completes "it has X in line N: ..."."""
    line: int
    column: int
    cheat: bool
    """True if only a cheat writes it."""

    def evidence(self) -> dict[str, Any]:
        return {"word": self.word[:200], "what": self.what, "line": self.line, "column": self.column}


def screen(
    text: str, every: Sequence[LeanToken] | None = None, *, allowed: Iterable[str] = ()
) -> list[ScreeningFinding]:
    """Returns the forbidden constructs of a Lean text, in order, at most MOST_FINDINGS. `every`: the text's words, if
    known; `allowed`: words that the trusted statement uses."""
    found: list[ScreeningFinding] = []
    for start, word, what, cheat in _findings(text, list(words(text)) if every is None else every, frozenset(allowed)):
        line, column = line_and_column(text, start)
        found.append(ScreeningFinding(word, what, line, column, cheat))
        if len(found) == MOST_FINDINGS:
            break
    return found


PLAIN_VALUES = frozenset(("true", "false"))


def computes(text: str) -> bool:
    """True if a Lean text may pass a tactic, command or attribute an option other than a number, `true` or `false`.
    Lean evaluates such values, and older versions let any function read and write files."""
    code = without_room(words(text))
    asked = any(
        word.kind in (TokenKind.COMMAND, TokenKind.ATTRIBUTE)
        or word.text in ("attribute", "decreasing_by")
        or (word.text == "by" and (after is None or after.text != "sorry"))
        for word, after in zip(code, [*code[1:], None], strict=False)
    )
    return asked and any(
        (one.text, name.kind, sign.text) == ("(", TokenKind.NAME, ":=")
        and not ((value.kind is TokenKind.NUMBER or value.text in PLAIN_VALUES) and end.text == ")")
        for one, name, sign, value, end in zip(code, code[1:], code[2:], code[3:], code[4:], strict=False)
    )


def parts(text: str) -> set[str]:
    """Returns every word and part of a name in the code of a text."""
    return {part for word in words(text) if word.kind is TokenKind.NAME for part in plain(word.text).split(".")} | {
        word.text for word in words(text) if word.kind is TokenKind.COMMAND
    }


Raw = tuple[int, str, str, bool]


def _findings(text: str, every: Sequence[LeanToken], allowed: frozenset[str]) -> Iterator[Raw]:
    code = without_room(every)
    if any(word.kind is not TokenKind.COMMENT and (word.doubtful or _interpolates(word)) for word in every):
        yield from _anywhere(without_comments(text, every))
    else:
        for word in code:
            if word.kind is TokenKind.STRING:
                for braces in IN_BRACES.finditer(word.text):
                    start = word.start + braces.start()
                    yield from (
                        (start + at, found, what, cheat) for at, found, what, cheat in _anywhere(braces.group())
                    )
    if _swallows(code):
        # A declared symbol may swallow the first letters of a keyword, so search inside words too.
        yield from (
            (word.start + at, found, what, True) for word in code for at, found, what, _ in _anywhere(word.text)
        )
    aesop = _of_aesop(code)
    for index, word in enumerate(code):
        match word.kind:
            case TokenKind.NAME if not (word.text == "unsafe" and index in aesop):
                yield from _name(word, code, index, allowed)
            case TokenKind.COMMAND if word.text in COMMANDS and word.text not in allowed:
                what, cheat = COMMANDS[word.text]
                yield word.start, word.text, what, cheat
            case TokenKind.ATTRIBUTE:
                yield from _attributes(code, index + 1)
            case _:
                pass


IN_BRACES = re.compile(r"\{(?:[^{}\"\\'«»\-/]|-(?![-/])|/(?!-))*\}")
BRACED = re.compile(rf'"(?:[^"\\{{]|\\.|{IN_BRACES.pattern})*+"', re.DOTALL)
"""String that ends at the same place whether its braces contain code or not: no quotation or comment begins in them."""


def _interpolates(word: LeanToken) -> bool:
    """True if braces in a Lean string may contain code with strings or comments of its own, so that it would end
    elsewhere than it seems."""
    return word.kind is TokenKind.STRING and "{" in word.text and BRACED.fullmatch(word.text) is None


def _of_aesop(code: Sequence[LeanToken]) -> set[int]:
    """Returns the indices at which `unsafe` is a rule phase of the tactic aesop: in brackets right after its name, or
    beside it in a list of attributes or rules."""
    found: set[int] = set()
    seen = 0
    for index, word in enumerate(code):
        if index < seen or word.kind is not TokenKind.NAME:
            continue
        listed = word.text == "add_aesop_rules" or (
            word.text == "aesop" and index > 0 and code[index - 1].text in ("@[", "[", ",", "local", "scoped")
        )
        if not listed and AESOP.match(word.text) is None:
            continue
        depth = 0
        for seen in range(index + 1, min(index + MOST_OF_AESOP, len(code))):
            turned = turn(code[seen])
            if depth + turned < 0 or (depth == 0 and turned == 0 and not listed) or code[seen].text == "set_option":
                break
            depth += turned
            if code[seen].text == "unsafe" and (depth or code[seen - 1].text != "]"):
                found.add(seen)
            listed = listed and not (depth == 0 and code[seen].text == ",")
    return found


def _name(word: LeanToken, code: Sequence[LeanToken], index: int, allowed: frozenset[str]) -> Iterator[Raw]:
    if word.text == "set_option":
        yield from _option(code, index)
    elif word.text == "attribute":
        if index + 1 < len(code) and code[index + 1].text == "[":
            yield from _attributes(code, index + 2)
    elif word.text == "deriving" and index + 1 < len(code) and code[index + 1].text == "handler":
        yield word.start, "deriving handler", ELABORATES, False
    elif (
        word.text == "eval"
        and index + 1 < len(code)
        and (word.end, "%") == (code[index + 1].start, code[index + 1].text)
    ):
        yield word.start, "eval%", ELABORATES, False
    elif plain(word.text) == "native" and _is_option(code, index):
        yield word.start, word.text, NEEDLESS_KEYWORDS["native_decide"], False
    elif word.text in NOTATIONS:
        yield from _symbols(code, index)
    if word.text in KEYWORDS:
        yield word.start, word.text, KEYWORDS[word.text], True
    elif word.text in NEEDLESS_KEYWORDS and word.text not in allowed:
        yield word.start, word.text, NEEDLESS_KEYWORDS[word.text], False
    for part in plain(word.text).split("."):
        if part in NAMES:
            yield word.start, word.text, NAMES[part], True
        elif part in NEEDLESS_NAMES and part not in allowed:
            yield word.start, word.text, NEEDLESS_NAMES[part], False


def _is_option(code: Sequence[LeanToken], index: int) -> bool:
    """True if the word at `index` is written as a tactic's option: `+native`, `native := true`."""
    before = code[index - 1].text if index else ""
    after = code[index + 1].text if index + 1 < len(code) else ""
    return before == "+" or after == ":="


def _option(code: Sequence[LeanToken], index: int) -> Iterator[Raw]:
    following = code[index + 1] if index + 1 < len(code) else None
    if following is None or following.kind is not TokenKind.NAME:
        yield code[index].start, "set_option", "an option without a plain name", True
        return
    name = plain(following.text)
    if OPTIONS.match(name) is None:
        cheat = CHEATING_OPTIONS.match(name) is not None
        yield following.start, f"set_option {name}", f"the option {name}, which proofs do not need", cheat


def _attributes(code: Sequence[LeanToken], index: int) -> Iterator[Raw]:
    """Yields what is forbidden in the attribute list that begins at `index`."""
    depth, first = 0, True
    for at in range(index, min(index + MOST_ATTRIBUTES, len(code))):
        word = code[at]
        if turned := turn(word):
            depth += turned
            if depth < 0:
                return
        elif word.text == "," and depth == 0:
            first = True
        elif first and word.kind is TokenKind.NAME:
            name = plain(word.text)
            first = name in ("local", "scoped")
            if name not in ATTRIBUTES:
                what = f"the attribute {name}, which proofs do not need"
                yield word.start, f"@[{name}]", what, name in CHEATING_ATTRIBUTES
    if index < len(code):
        yield code[index - 1].start, "attribute", "a list of attributes without an end", False


BREAKING = re.compile(r"--|/-|-/|[\"«»`]|(?:\A|[\s()\[\]{},;.⟨⟩'])'")
"""Parts of a symbol that make comments, names and quotations begin elsewhere. A `'` after any other sign makes the
following word doubtful, which is detected there."""


def _symbols(code: Sequence[LeanToken], index: int) -> Iterator[Raw]:
    """Yields forbidden symbols that a notation declares: they must not change where comments and quotations begin."""
    for word in code[index + 1 : index + 60]:
        if word.text in ("=>", "=") or word.kind in (TokenKind.ATTRIBUTE, TokenKind.COMMAND):
            return
        if word.kind is TokenKind.STRING and BREAKING.search(word.text[1:-1]):
            yield word.start, word.text, "a symbol that holds the start of a comment or of a quotation", True


def _swallows(code: Sequence[LeanToken]) -> bool:
    """True if a notation declares a symbol that continues from a sign into a letter."""
    return any(word.text in NOTATIONS for word in code) and any(
        word.kind is TokenKind.STRING and re.search(rf"[^{REST}\s][{REST}]+\s*\"\Z", word.text[1:] if word.text else "")
        for word in code
    )


COMMON = frozenset(
    ("axiom", "extern", "prelude", "initialize", "elab", "macro", "elab_rules", "macro_rules", "sorryAx")
)
"""Forbidden words that are parts of honest words."""
HARMLESS = "unsafe"
"""Word that need not be searched inside others: no theorem can use unsafe code."""
HIDDEN = re.compile(
    "|".join(sorted(map(re.escape, (CHEATS.keys() - COMMON - {HARMLESS}) | {"native_decide"}), key=len, reverse=True))
    + rf"|(?<![^\W\d])(?:{'|'.join(sorted(COMMON))})\b|set_option\s+(?:«?debug|«?warn)|#(?:eval|exit)"
)


def _anywhere(text: str) -> Iterator[Raw]:
    for found in HIDDEN.finditer(text):
        yield found.start(), found.group(), "forbidden words where the text can be read in two ways", True
