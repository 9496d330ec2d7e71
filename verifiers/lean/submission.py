"""The submission's file: what is compiled is the model's text after the statement's own beginning.

What always holds: pure. The imports are the statement's and those that the spec allows; `maxHeartbeats` is at most
what the spec allows; a repetition of the statement's header, word by word, is left away, because it is there already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from verifiers.lean import commands
from verifiers.lean.lexer import LeanToken, TokenKind, code, plain
from verifiers.lean.screening import ScreeningFinding
from verifiers.lean.spec import LeanSpec
from verifiers.lean.statement import DEFINITIONS, LeanStatement

HEARTBEATS = frozenset(("maxHeartbeats", "synthInstance.maxHeartbeats"))
DEPTH, MOST_DEPTH = "maxRecDepth", 20_000


@dataclass(frozen=True)
class LeanSource:
    text: str
    line_shift: int
    """What has to be added to a line of `text` to have the submission's own."""
    modules: tuple[str, ...]
    """What `text` imports, a line for each, before anything else."""


def assemble(
    spec: LeanSpec, statement: LeanStatement, submission: str, words: Sequence[LeanToken]
) -> LeanSource | ScreeningFinding:
    """The file to compile, or what forbids it. `words` are the submission's code."""
    own = commands.imports(words)
    if own.odd:
        return ScreeningFinding(own.odd, "a header that is more than plain imports", 1, 1, own.odd == "prelude")
    for module in own.modules:
        if not _allowed(plain(module), (*statement.imports, *spec.imports)):
            return ScreeningFinding(f"import {module}", "an import that the statement does not have", 1, 1, False)
    modules = dict.fromkeys((*statement.imports, *([DEFINITIONS] if statement.defines else []), *own.modules))
    begin = _after_header(statement, words, own.end)
    body = [word for word in words if word.start >= begin]
    context = statement.context
    if begin == own.end and any(one.full_name == statement.full_name for one in commands.theorems(submission, body)):
        context = commands.without_scopes(context)  # it names the theorem in full
    head = "".join(f"import {module}\n" for module in modules) + context.strip("\n") + "\n"
    text = _tamed(submission, begin, body, spec.heartbeats)
    return LeanSource(head + text, submission.count("\n", 0, begin) - head.count("\n"), tuple(modules))


def _allowed(module: str, known: tuple[str, ...]) -> bool:
    return module == "Init" or any(
        module == plain(name) or module.startswith(f"{plain(name)}.") for name in ("Init", *known)
    )


def _after_header(statement: LeanStatement, every: Sequence[LeanToken], start: int) -> int:
    """Where the submission goes on after it has repeated the statement's header; `start` where it has not."""
    header = [word.text for word in code(statement.header)]
    words = [word for word in every if word.start >= start][: len(header)]
    if header and [word.text for word in words] == header:
        return words[len(header) - 1].end
    return start


def _tamed(text: str, begin: int, words: Sequence[LeanToken], heartbeats: int) -> str:
    """The text from `begin` on, with no more heartbeats and no deeper recursion than may be."""
    pieces: list[str] = []
    position = begin
    for option, name, value in zip(words, words[1:], words[2:], strict=False):
        if option.text != "set_option" or value.kind is not TokenKind.NUMBER:
            continue
        limit = heartbeats if plain(name.text) in HEARTBEATS else MOST_DEPTH if plain(name.text) == DEPTH else None
        if limit is not None and not 0 < _number(value.text) <= limit:
            pieces += [text[position : value.start], str(limit)]
            position = value.end
    return "".join([*pieces, text[position:]])


def _number(text: str) -> int:
    """0 for what cannot be read."""
    try:
        return int(text.replace("_", ""), 0 if text[:2].lower() in ("0x", "0b", "0o") else 10) if len(text) < 20 else 0
    except ValueError:
        return 0
