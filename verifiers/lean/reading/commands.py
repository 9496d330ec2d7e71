"""Splits a Lean file into its imports, commands and theorems.

Invariants: pure; linear in the text. Commands are recognized by their first word, as people write them; where that is
wrong, Lean reports it on compiling the result. No verdict depends on it: the statement is compiled whole.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import pairwise

from verifiers.lean.reading.lexer import PART, LeanToken, TokenKind, code, edited, plain, turn

MODIFIERS = frozenset(
    ("private", "protected", "noncomputable", "nonrec", "partial", "unsafe", "public", "meta", "scoped", "local")
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
    """theorem lemma def example structure inductive axiom namespace section end variable universe""".split()  # noqa: SIM905
)
"""Words that occur in no term, so that they end a command."""
ATTACHED = frozenset(("open", "set_option", "variable", "universe", "include", "omit", "attribute"))
"""Commands that may precede another one, joined by `in`."""
BINDS = frozenset(("let", "have", "letI", "haveI"))
"""Words of a term that are followed by their own `:=`."""
MOST_WORDS = 100
"""Maximum number of words before another command."""
MOST_ATTRIBUTES = 100
FIRST_WORDS = CONTEXT | SYNTAX | DECLARATIONS | MODIFIERS


@dataclass(frozen=True)
class Imports:
    modules: tuple[str, ...]
    end: int
    """Start of the text after the last import."""
    odd: str = ""
    """Word that makes the header more than plain imports: `prelude`, `module`, `public`, …"""


@dataclass(frozen=True)
class Declared:
    """One theorem of a Lean text."""

    name: LeanToken
    full_name: str
    """Name with its namespaces; parts keep their quotation marks."""
    start: int
    """Start of its modifiers."""
    signature: tuple[LeanToken, ...]
    """Binders and type, up to its proof."""
    proved: bool
    """True if there is something in place of a proof."""
    private: bool

    @property
    def says(self) -> tuple[str, ...]:
        """Words of the theorem's signature."""
        return tuple(word.text for word in self.signature)


def as_plain_file(text: str, words: Sequence[LeanToken]) -> str:
    """Converts a Lean file of the module system to a plain one: nothing in it stays hidden, and no position changes.
    Other texts are returned unchanged. `words` are its code."""
    if not words or words[0].text != "module":
        return text
    hiding = [words[0]]
    for at, word in enumerate(words):
        following = [one.text for one in words[at + 1 : at + 3]]
        hides = word.text in ("public", "meta") and following[:1] and following[0] in FIRST_WORDS | {"import"}
        if hides or (word.text == "all" and words[at - 1].text == "import"):
            hiding.append(word)
        elif word.kind is TokenKind.ATTRIBUTE and following == ["expose", "]"]:
            hiding += words[at : at + 3]
    return edited(text, 0, len(text), [(word.start, word.end, " " * len(word.text)) for word in hiding])


def imports(words: Sequence[LeanToken]) -> Imports:
    """Returns the imports of a Lean file, given its code words."""
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
    """Returns every theorem and lemma of a Lean text, in order, with full names. `words` are its code or part of it."""
    words = code(text) if words is None else words
    found: list[Declared] = []
    scopes: list[str] = []
    alternatives = _alternatives(words)
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else None
        if word.kind is not TokenKind.NAME or word.doubtful:
            continue
        if word.text in SCOPES:
            _enter(scopes, word, following, text)
        elif word.text in THEOREMS and following is not None and following.kind is TokenKind.NAME:
            first, says = _first_modifier(words, index), _signature(words, index + 2, alternatives)
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


def _signature(words: Sequence[LeanToken], index: int, alternatives: Container[int]) -> tuple[LeanToken, ...]:
    """Returns a theorem's words from `index` up to its proof or the next command. A proof begins with `:=`, `|` or
    `where` outside brackets."""
    depth, begun, bound = 0, False, 0
    found: list[LeanToken] = []
    for at in range(index, len(words)):
        word = words[at]
        if word.kind is TokenKind.NAME and word.text in KEYWORDS:
            break
        if turned := turn(word):
            depth += turned
        elif depth == 0:
            if begun and word.text in BINDS:
                bound += 1
            elif begun and word.text == ":=" and bound:
                bound -= 1
            elif begun and (word.text in (":=", "where") or (word.text == "|" and at in alternatives)):
                break
            begun = begun or word.text == ":"
        found.append(word)
    return tuple(found)


def _alternatives(words: Sequence[LeanToken]) -> set[int]:
    """Returns the indices of each `|` that starts an alternative: followed, in the same brackets, by `=>` and before
    that by no `:=`."""
    found: set[int] = set()
    pending: list[list[int]] = [[]]
    for at, (word, following) in enumerate(pairwise(words)):
        if turned := turn(word):
            if turned > 0:
                pending += [[] for _ in range(turned)]
            else:
                del pending[max(1, len(pending) + turned) :]
        elif word.text == "|":
            pending[-1].append(at)
        elif word.text == ":=" or word.text in KEYWORDS:
            pending[-1].clear()
        elif word.text == "=" and following.text == ">" and following.start == word.end:
            found.update(pending[-1])
            pending[-1].clear()
    return found


@dataclass(frozen=True)
class Command:
    """One command of a Lean text, without the comments around it."""

    words: tuple[LeanToken, ...]
    key: int
    """Index of its keyword, after attributes, modifiers and commands with `in`."""
    attached: int
    """Number of words up to the last such `in`."""

    @property
    def start(self) -> int:
        return self.words[0].start

    @property
    def end(self) -> int:
        return self.words[-1].end

    @property
    def keyword(self) -> str:
        return self.words[self.key].text

    @property
    def says(self) -> tuple[str, ...]:
        """Words that identify a Lean command, regardless of visibility."""
        hidden = any(word.text == "private" for word in self.words[: self.key])
        return tuple(word.text for word in self.words if not (hidden and word.text == "private"))

    @property
    def has(self) -> frozenset[str]:
        """Words before the command's keyword, such as `private`."""
        return frozenset(word.text for word in self.words[: self.key])


def commands(text: str, words: Sequence[LeanToken]) -> list[Command]:
    """Splits a Lean text into commands. `words` are its code, or a part of it."""
    found: list[Command] = []
    at = 0
    while at < len(words):
        key, attached = _before(text, words, at)
        end = _end(text, words, key)
        while end < len(words) and words[end - 1].text == "in":
            key, attached = _before(text, words, end)[0], end  # joined to whatever follows
            end = _end(text, words, key)
        found.append(Command(tuple(words[at:end]), min(key, end - 1) - at, attached - at))
        at = end
    return found


def _end(text: str, words: Sequence[LeanToken], key: int) -> int:
    """Returns the end, as an index of `words`, of the Lean command whose keyword is at `key`."""
    end, depth = min(key + 1, len(words)), 0
    keyword = words[end - 1].text
    while end < len(words):
        outermost = _first_of_line(text, words, end) and _column(text, words[end]) == 0
        if keyword == "mutual":
            if words[end].text == "end":
                return end + 1
        elif (depth == 0 or outermost) and _begins(text, words, end):
            break
        elif outermost and keyword in CONTEXT and words[end].kind is TokenKind.NAME:
            break  # their continuation lines are indented
        depth = max(0, depth + turn(words[end]))
        end += 1
    return end


def _before(text: str, words: Sequence[LeanToken], at: int) -> tuple[int, int]:
    """Returns the keyword's index of the Lean command that begins at `at`. And the end of the last `in` before it."""
    attached = at
    while at < len(words):
        word = words[at]
        if word.kind is TokenKind.ATTRIBUTE:
            at = _after_bracket(words, at)
        elif word.text in MODIFIERS:
            at += 1
        elif word.text in ATTACHED and (found := _in(text, words, at)) is not None:
            at = attached = found + 1
        else:
            break
    return at, attached


def _after_bracket(words: Sequence[LeanToken], at: int) -> int:
    depth = 0
    for index in range(at, min(at + MOST_WORDS, len(words))):
        depth += turn(words[index])
        if depth <= 0:
            return index + 1
    return at + 1


def _in(text: str, words: Sequence[LeanToken], at: int) -> int | None:
    """Returns the index of the `in` that joins the Lean command at `at` to the next one, or None."""
    depth = 0
    for index in range(at + 1, min(at + MOST_WORDS, len(words) - 1)):
        word = words[index]
        depth += turn(word)
        if depth == 0 and word.kind is TokenKind.NAME:
            if word.text == "in":
                following = words[index + 1]
                return index if following.kind is TokenKind.ATTRIBUTE or following.text in FIRST_WORDS else None
            first = _first_of_line(text, words, index)
            if word.text in KEYWORDS or (first and (word.text in FIRST_WORDS or not _column(text, word))):
                return None
    return None


def _begins(text: str, words: Sequence[LeanToken], at: int) -> bool:
    word = words[at]
    if word.kind is TokenKind.NAME and word.text in KEYWORDS:
        return True
    if not _first_of_line(text, words, at):
        return False
    if word.kind is TokenKind.COMMAND:
        return _column(text, word) == 0
    if word.kind is TokenKind.NAME and word.text in ("open", "set_option") and _column(text, word):
        return not _joined_to_a_term(words, at) or _in(text, words, at) is not None
    return word.kind is TokenKind.ATTRIBUTE or (word.kind is TokenKind.NAME and word.text in FIRST_WORDS)


def _joined_to_a_term(words: Sequence[LeanToken], at: int) -> bool:
    """True if an indented `open` or `set_option` is part of a proof: its `in` follows soon."""
    return any(word.text == "in" for word in words[at + 1 : at + 20])


def _first_of_line(text: str, words: Sequence[LeanToken], at: int) -> bool:
    return at == 0 or text.find("\n", words[at - 1].end, words[at].start) >= 0


def _column(text: str, word: LeanToken) -> int:
    return word.start - text.rfind("\n", 0, word.start) - 1


def parts_of(name: str) -> list[str]:
    """Splits a Lean name into its parts, with their quotation marks."""
    return re.findall(PART, name)


def _first_modifier(words: Sequence[LeanToken], index: int) -> int:
    """Returns the index of the first attribute or modifier of the declaration whose keyword is at `index`."""
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
