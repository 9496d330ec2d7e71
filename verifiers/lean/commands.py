"""Where a Lean file's parts begin: its imports, its commands, the theorem it ends with.

What always holds: pure; the pieces in order are the text. Commands are told by their first word at the beginning of a
line, as people write them; where that is wrong, Lean says so when the pieces are compiled.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from verifiers.lean.lexer import PART, LeanToken, TokenKind, code, plain, turn

MODIFIERS = frozenset(
    ("private", "protected", "noncomputable", "nonrec", "partial", "unsafe", "public", "scoped", "local")
)
THEOREMS = frozenset(("theorem", "lemma"))
SCOPES = frozenset(("namespace", "section", "end", "mutual"))
CONTEXT = frozenset(("open", "variable", "universe", "universes", "set_option", "include", "omit", "export")) | SCOPES
SYNTAX = frozenset(("notation", "notation3", "infix", "infixl", "infixr", "prefix", "postfix"))
DECLARATIONS = frozenset(
    """def abbrev structure inductive class instance axiom opaque example deriving attribute alias macro macro_rules
    syntax elab elab_rules initialize irreducible_def coinductive declare_syntax_cat simproc run_cmd theorem lemma
    add_decl_doc compile_inductive proof_wanted""".split()  # noqa: SIM905
)
KEYWORDS = frozenset(
    ("theorem", "lemma", "def", "example", "structure", "inductive", "axiom", "namespace", "section", "end")
)
"""Words that no term has in it, so that a signature is over there."""
MOST_ATTRIBUTES = 100
FIRST_WORDS = CONTEXT | SYNTAX | DECLARATIONS | MODIFIERS


@dataclass(frozen=True)
class Imports:
    modules: tuple[str, ...]
    end: int
    """Where the text after the last import begins."""
    odd: str = ""
    """A word that makes the header another than plain imports: `prelude`, `module`, `public`, …"""


@dataclass(frozen=True)
class Declared:
    """One theorem of a text."""

    name: LeanToken
    full_name: str
    """With the namespaces around it; name parts keep their quotation marks."""
    start: int
    """Where its modifiers begin."""
    signature: tuple[LeanToken, ...]
    """Binders and type, up to its proof."""
    proved: bool
    """Whether something stands in the place of a proof."""
    private: bool

    @property
    def says(self) -> tuple[str, ...]:
        """The words of its signature."""
        return tuple(word.text for word in self.signature)


def imports(words: Sequence[LeanToken]) -> Imports:
    """Of a file's code words."""
    modules: list[str] = []
    end, index = 0, 0
    while index < len(words):
        word = words[index]
        if word.text in ("prelude", "module") and index == 0:
            return Imports((), word.end, word.text)
        if word.text in ("public", "private", "meta") and index + 1 < len(words):
            if words[index + 1].text in ("import", "meta"):
                return Imports(tuple(modules), word.end, f"{word.text} import")
            break
        if word.text != "import" or index + 1 == len(words):
            break
        name = words[index + 1]
        if name.text in ("all", "runtime") or name.kind is not TokenKind.NAME:
            return Imports(tuple(modules), name.end, f"import {name.text}")
        modules.append(name.text)
        end, index = name.end, index + 2
    return Imports(tuple(modules), end)


def theorems(text: str, words: Sequence[LeanToken] | None = None) -> list[Declared]:
    """Every theorem and lemma of a text, in order, with the names that its namespaces give them. `words` are its code,
    or a part of that."""
    words = code(text) if words is None else words
    found: list[Declared] = []
    scopes: list[str] = []
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else None
        if word.kind is not TokenKind.NAME or word.doubtful:
            continue
        if word.text in SCOPES:
            _enter(scopes, word, following, text)
        elif word.text in THEOREMS and following is not None and following.kind is TokenKind.NAME:
            first, says = _first_modifier(words, index), _signature(words, index + 2)
            behind = words[index + 2 + len(says) :][:1]
            found.append(
                Declared(
                    name=following,
                    full_name=_full_name(scopes, following.text),
                    start=words[first].start,
                    signature=says,
                    proved=bool(behind) and behind[0].text in (":=", "|", "where"),
                    private=any(before.text == "private" for before in words[first:index]),
                )
            )
    return found


def _signature(words: Sequence[LeanToken], index: int) -> tuple[LeanToken, ...]:
    """Words from `index` up to the `:=` or the first `|` that no bracket holds, or to the next command."""
    depth, begun = 0, False
    found: list[LeanToken] = []
    for at in range(index, len(words)):
        word = words[at]
        if word.kind is TokenKind.NAME and word.text in KEYWORDS:
            break
        if turned := turn(word):
            depth += turned
        elif depth == 0:
            if begun and (word.text in (":=", "where") or (word.text == "|" and found and found[-1].text != "∣")):
                break
            begun = begun or word.text == ":"
        found.append(word)
    return tuple(found)


def commands(text: str) -> list[str]:
    """The text cut before every word that begins a command at the beginning of a line; the first may be empty."""
    cuts = [0]
    for word in code(text):
        begins = word.start == 0 or text[word.start - 1] == "\n"
        if (
            begins
            and (word.kind in (TokenKind.ATTRIBUTE, TokenKind.COMMAND) or word.text in FIRST_WORDS)
            and word.start
        ):
            cuts.append(word.start)
    return [text[start:end] for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True)]


def context(header: str) -> tuple[str, bool]:
    """What of a header has to be said again in every file that goes on with it, and whether there is anything else in
    it: declarations, which are compiled once and imported."""
    repeated: list[str] = []
    declares = attached = False
    for command in commands(header):
        words = code(command)
        if not words:
            continue
        goes_on = words[-1].text == "in"
        if attached or goes_on or not _is_context(words):
            declares = True
        else:
            repeated.append(command)
        attached = goes_on
    return "".join(repeated), declares


def without_scopes(text: str) -> str:
    """A context whose names are all at the root."""
    remaining = []
    for command in commands(text):
        words = code(command)
        if not words or words[0].text not in ("namespace", "section", "end", "noncomputable"):
            remaining.append(command)
    return "".join(remaining)


def parts_of(name: str) -> list[str]:
    """A name's parts, with their quotation marks."""
    return re.findall(PART, name)


def _is_context(words: Sequence[LeanToken]) -> bool:
    first = words[0].text
    if first == "noncomputable":
        return len(words) > 1 and words[1].text == "section"
    if first == "local":
        return len(words) > 1 and words[1].text in SYNTAX
    return first in CONTEXT and first != "mutual"


def _first_modifier(words: Sequence[LeanToken], index: int) -> int:
    """Of a declaration whose keyword stands at `index`: attributes and modifiers before it belong to it."""
    while index > 0:
        before = words[index - 1]
        if before.text in MODIFIERS:
            index -= 1
        elif before.text == "]":
            back, depth = index - 1, 0
            while back >= max(0, index - MOST_ATTRIBUTES):
                depth += (words[back].text == "]") - (words[back].text in ("[", "@["))
                if depth == 0:
                    break
                back -= 1
            if depth or words[back].kind is not TokenKind.ATTRIBUTE:
                return index
            index = back
        else:
            return index
    return index


def _enter(scopes: list[str], word: LeanToken, following: LeanToken | None, text: str) -> None:
    same_line = following is not None and "\n" not in text[word.end : following.start]
    named = (
        same_line and following is not None and following.kind is TokenKind.NAME and following.text not in FIRST_WORDS
    )
    names = parts_of(following.text) if named and following is not None else []
    if word.text == "end":
        for _ in range(max(1, len(names))):
            if scopes:
                scopes.pop()
    elif word.text == "namespace":
        scopes.extend(names)
    else:
        scopes.extend([""] * max(1, len(names)))


def _full_name(scopes: Sequence[str], name: str) -> str:
    parts = parts_of(name)
    if parts and plain(parts[0]) == "_root_":
        return ".".join(parts[1:])
    return ".".join([scope for scope in scopes if scope] + parts)
