"""What no honest proof needs, found in its text before anything of it is compiled.

This is the first of several defences and never the only one: what a proof rests on is decided by the kernel, the
axioms and a check that the submission has no part in. The words here are what could reach behind those: options that
switch the kernel off, code that runs while Lean elaborates, the compiler's trust. What the trusted statement itself
uses is not held against a submission, unless it is an outright cheat.

What always holds: pure; linear in the text; comments and strings are never held against anybody, unless the text can be
read in two ways (`lexer`), in which case all of it counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from verifiers.lean.lexer import REST, Kind, Word, line_and_column, plain, turn, without_room, words

CHEATS = {
    "axiom": "states an axiom of its own",
    "sorryAx": "calls the axiom behind `sorry` by its name",
    "unsafe": "unsafe code",
    "implemented_by": "other code in the place of a definition",
    "prelude": "a Lean without its own library",
    "initialize": "code that runs when the file is imported",
    "builtin_initialize": "code that runs when the file is imported",
    "run_cmd": "code that runs while Lean elaborates",
    "run_elab": "code that runs while Lean elaborates",
    "run_meta": "code that runs while Lean elaborates",
    "run_tac": "code that runs while Lean elaborates",
    "by_elab": "code that runs while Lean elaborates",
    "lcProof": "a proof of anything, kept for the compiler",
    "lcUnreachable": "a proof of anything, kept for the compiler",
    "reduceBool": "a proof by running compiled code",
    "reduceNat": "a proof by running compiled code",
    "ofReduceBool": "a proof by running compiled code",
    "ofReduceNat": "a proof by running compiled code",
    "trustCompiler": "a proof by running compiled code",
    "addDecl": "a declaration added behind the elaborator",
    "addDeclCore": "a declaration added behind the elaborator",
    "addDeclWithoutChecking": "a declaration added behind the elaborator",
    "unsafeIO": "code that runs while Lean elaborates",
    "unsafeCast": "unsafe code",
    "skipKernelTC": "an option that switches the kernel off",
}
NEEDLESS = {
    "native_decide": "trusts the compiler beside the kernel",
    "bv_decide": "trusts the compiler beside the kernel",
    "elab": "code that runs while Lean elaborates",
    "elab_rules": "code that runs while Lean elaborates",
    "macro": "syntax made by code",
    "macro_rules": "syntax made by code",
    "syntax": "syntax of its own",
    "declare_syntax_cat": "syntax of its own",
    "simproc": "code that runs while Lean elaborates",
    "dsimproc": "code that runs while Lean elaborates",
    "simproc_decl": "code that runs while Lean elaborates",
    "dsimproc_decl": "code that runs while Lean elaborates",
    "builtin_simproc": "code that runs while Lean elaborates",
    "register_option": "code that runs while Lean elaborates",
    "register_builtin_option": "code that runs while Lean elaborates",
    "declare_config_elab": "code that runs while Lean elaborates",
    "include_str": "reads files",
    "plausible": "code that runs while Lean elaborates",
    "slim_check": "code that runs while Lean elaborates",
    "module": "the module system, which hides what a file holds",
    "IO": "input and output",
    "EIO": "input and output",
    "BaseIO": "input and output",
    "EStateM": "input and output",
    "RealWorld": "input and output",
    "Environment": "Lean's own environment",
    "MetaM": "code for the elaborator",
    "CoreM": "code for the elaborator",
    "TacticM": "code for the elaborator",
    "TermElabM": "code for the elaborator",
    "CommandElabM": "code for the elaborator",
    "MacroM": "code for the elaborator",
}
COMMANDS = {
    "#exit": ("ends the file early", True),
    "#eval": ("code that runs while Lean elaborates", False),
    "#eval!": ("code that runs while Lean elaborates", True),
    "#guard": ("code that runs while Lean elaborates", False),
    "#guard_expr": ("code that runs while Lean elaborates", False),
    "#guard_msgs": ("hides what Lean says", True),
    "#sample": ("code that runs while Lean elaborates", False),
    "#test": ("code that runs while Lean elaborates", False),
    "#html": ("code that runs while Lean elaborates", False),
    "#widget": ("code that runs while Lean elaborates", False),
}
OPTIONS = re.compile(
    r"(?:maxHeartbeats|maxRecDepth|maxUniverseOffset|autoImplicit|relaxedAutoImplicit|synthInstance\.\w+"
    r"|pp(?:\.\w+)+|trace(?:\.\w+)+|linter(?:\.\w+)+|tactic(?:\.\w+)+|exponentiation\.threshold|backward(?:\.\w+)+"
    r"|structureDiamondWarning|diagnostics(?:\.\w+)?|says\.\w+|quotPrecheck|hygiene|push_cast\.\w+|aesop(?:\.\w+)+"
    r"|simprocs|smartUnfolding|allowUnsafeReducibility|checkBinderAnnotations|eqns\.\w+|match\.\w+|profiler)\Z"
)
"""What a submission may set. None of these reaches the kernel."""
CHEATING_OPTIONS = re.compile(r"(?:debug|warn|bootstrap|compiler|interpreter|experimental|genCtorIdx)(?:\.|\Z)")
ATTRIBUTES = frozenset(
    """simp ext refl symm trans congr gcongr inline always_inline noinline specialize nospecialize macro_inline
    reducible irreducible semireducible instance default_instance class elab_as_elim elab_without_expected_type
    match_pattern norm_cast push_cast coe simps to_additive to_dual mono aesop ematch grind cases_eliminator
    induction_eliminator local scoped fun_prop continuity measurability bound simp_arith seval deprecated inherit_doc
    nolint stacksProject pp_dot pp_nodot rfl recursor eqns irreducible_def reassoc elementwise higher_order
    notation_class field_simps mfld_simps functor_norm monad_norm parity_simps nontriviality push pull expose
    wf_preprocess method_specs suggest_for""".split()  # noqa: SIM905
)
"""None of these takes code."""
CHEATING_ATTRIBUTES = frozenset(
    ("implemented_by", "extern", "csimp", "init", "builtin_init", "export", "computed_fields")
)
NOTATIONS = frozenset(("notation", "notation3", "infix", "infixl", "infixr", "prefix", "postfix"))
MOST_FINDINGS = 10
MOST_ATTRIBUTES = 300
"""Words of one list of attributes."""


@dataclass(frozen=True)
class Finding:
    word: str
    what: str
    """Goes after "it has ": what it would do."""
    line: int
    column: int
    cheat: bool
    """Whether only somebody who means to cheat writes it."""

    def evidence(self) -> dict[str, Any]:
        return {"word": self.word[:200], "what": self.what, "line": self.line, "column": self.column}


def screen(text: str, every: Sequence[Word] | None = None, *, allowed: Iterable[str] = ()) -> list[Finding]:
    """Everything forbidden, in the order of the text, at most MOST_FINDINGS. `every` are the text's words, where they
    are known; `allowed` those that the trusted statement uses."""
    found: list[Finding] = []
    for start, word, what, cheat in _findings(text, list(words(text)) if every is None else every, frozenset(allowed)):
        line, column = line_and_column(text, start)
        found.append(Finding(word, what, line, column, cheat))
        if len(found) == MOST_FINDINGS:
            break
    return found


def parts(text: str) -> set[str]:
    """Every word and part of a name that the code of a text uses."""
    return {part for word in words(text) if word.kind is Kind.NAME for part in plain(word.text).split(".")} | {
        word.text for word in words(text) if word.kind is Kind.COMMAND
    }


Raw = tuple[int, str, str, bool]


def _findings(text: str, every: Sequence[Word], allowed: frozenset[str]) -> Iterator[Raw]:
    code = without_room(every)
    if any(word.doubtful or _interpolates(word) for word in every):
        yield from _anywhere(text, 0)
    if _swallows(code):
        # A symbol of its own may swallow the first letters of a keyword, so that keywords are looked for inside words.
        yield from (
            (word.start + at, found, what, True) for word in code for at, found, what, _ in _anywhere(word.text, 0)
        )
    for index, word in enumerate(code):
        match word.kind:
            case Kind.NAME:
                yield from _name(word, code, index, allowed)
            case Kind.COMMAND if word.text in COMMANDS and word.text not in allowed:
                what, cheat = COMMANDS[word.text]
                yield word.start, word.text, what, cheat
            case Kind.ATTRIBUTE:
                yield from _attributes(code, index + 1)
            case _:
                pass


def _interpolates(word: Word) -> bool:
    """Whether code may stand between its braces, with strings of its own in it, so that others end than it seems."""
    return word.kind is Kind.STRING and "{" in word.text


def _name(word: Word, code: Sequence[Word], index: int, allowed: frozenset[str]) -> Iterator[Raw]:
    if word.text == "set_option":
        yield from _option(code, index)
    elif word.text == "attribute":
        if index + 1 < len(code) and code[index + 1].text == "[":
            yield from _attributes(code, index + 2)
    elif word.text == "deriving" and index + 1 < len(code) and code[index + 1].text == "handler":
        yield word.start, "deriving handler", "code that runs while Lean elaborates", False
    elif plain(word.text) == "native" and _is_option(code, index):
        yield word.start, word.text, NEEDLESS["native_decide"], False
    elif word.text in NOTATIONS:
        yield from _symbols(code, index)
    for part in plain(word.text).split("."):
        if part in CHEATS:
            yield word.start, word.text, CHEATS[part], True
        elif part in NEEDLESS and part not in allowed:
            if part == "module" and index > 0:
                continue  # only the first word of a file is the keyword
            yield word.start, word.text, NEEDLESS[part], False


def _is_option(code: Sequence[Word], index: int) -> bool:
    """Whether it is written as a tactic's option: `+native`, `native := true`."""
    before = code[index - 1].text if index else ""
    after = code[index + 1].text if index + 1 < len(code) else ""
    return before == "+" or after == ":="


def _option(code: Sequence[Word], index: int) -> Iterator[Raw]:
    following = code[index + 1] if index + 1 < len(code) else None
    if following is None or following.kind is not Kind.NAME:
        yield code[index].start, "set_option", "an option without a plain name", True
        return
    name = plain(following.text)
    if OPTIONS.match(name) is None:
        cheat = CHEATING_OPTIONS.match(name) is not None
        yield following.start, f"set_option {name}", f"the option {name}, which proofs do not need", cheat


def _attributes(code: Sequence[Word], index: int) -> Iterator[Raw]:
    """Of the list that begins at `index`, up to its bracket."""
    depth, first = 0, True
    for at in range(index, min(index + MOST_ATTRIBUTES, len(code))):
        word = code[at]
        if turned := turn(word):
            depth += turned
            if depth < 0:
                return
        elif word.text == "," and depth == 0:
            first = True
        elif first and word.kind is Kind.NAME:
            name = plain(word.text)
            first = name in ("local", "scoped")
            if name not in ATTRIBUTES:
                what = f"the attribute {name}, which proofs do not need"
                yield word.start, f"@[{name}]", what, name in CHEATING_ATTRIBUTES
    if index < len(code):
        yield code[index - 1].start, "attribute", "a list of attributes without an end", False


def _symbols(code: Sequence[Word], index: int) -> Iterator[Raw]:
    """Symbols that a notation declares: they must not change where comments and quotations begin."""
    for word in code[index + 1 : index + 60]:
        if word.text in ("=>", "=") or word.kind in (Kind.ATTRIBUTE, Kind.COMMAND):
            return
        if word.kind is Kind.STRING and re.search(r"--|/-|-/|['\"«»`]", word.text[1:-1]):
            yield word.start, word.text, "a symbol that holds the start of a comment or of a quotation", True


def _swallows(code: Sequence[Word]) -> bool:
    """Whether some notation declares a symbol that goes over from a sign into a letter."""
    return any(word.text in NOTATIONS for word in code) and any(
        word.kind is Kind.STRING and re.search(rf"[^{REST}\s][{REST}]+\s*\"\Z", word.text[1:] if word.text else "")
        for word in code
    )


COMMON = frozenset(
    ("axiom", "extern", "prelude", "initialize", "elab", "macro", "elab_rules", "macro_rules", "sorryAx")
)
"""Words that are parts of honest words."""
HIDDEN = re.compile(
    "|".join(sorted(map(re.escape, (CHEATS.keys() - COMMON) | {"native_decide"}), key=len, reverse=True))
    + rf"|(?<![^\W\d])(?:{'|'.join(sorted(COMMON))})\b|set_option\s+(?:«?debug|«?warn)|#(?:eval|exit)"
)


def _anywhere(text: str, offset: int) -> Iterator[Raw]:
    for found in HIDDEN.finditer(text):
        yield offset + found.start(), found.group(), "forbidden words where the text can be read in two ways", True
