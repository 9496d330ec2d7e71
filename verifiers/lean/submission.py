"""The submission's file: what is compiled is the model's text after the statement's own beginning.

What always holds: pure. The imports are the statement's and those that the spec allows; `maxHeartbeats` is at most what
the spec allows; a repetition of the statement's header, word by word, is left away, because the header is there already.
"""

from __future__ import annotations

from dataclasses import dataclass

from verifiers.lean import commands
from verifiers.lean.lexer import Kind, code, plain
from verifiers.lean.screening import Finding
from verifiers.lean.spec import LeanSpec
from verifiers.lean.statement import DEFINITIONS, Statement

HEARTBEATS = frozenset(("maxHeartbeats", "synthInstance.maxHeartbeats"))
DEPTH, MOST_DEPTH = "maxRecDepth", 20_000


@dataclass(frozen=True)
class Source:
    text: str
    line_shift: int
    """What has to be added to a line of `text` to have the submission's own."""


def assemble(spec: LeanSpec, statement: Statement, submission: str) -> Source | Finding:
    """The file to compile, or what forbids it."""
    words = code(submission)
    own = commands.imports(words)
    if own.odd:
        return Finding(own.odd, "a header that is more than plain imports", 1, 1, own.odd == "prelude")
    for module in own.modules:
        if not _allowed(plain(module), (*statement.imports, *spec.imports)):
            return Finding(f"import {module}", "an import that the statement does not have", 1, 1, False)
    modules = dict.fromkeys((*statement.imports, *([DEFINITIONS] if statement.defines else []), *own.modules))
    begin = _after_header(statement, submission, own.end)
    head = "".join(f"import {module}\n" for module in modules) + statement.context.strip("\n") + "\n"
    body = _tamed(submission[begin:], spec.heartbeats)
    return Source(head + body, submission.count("\n", 0, begin) - head.count("\n"))


def _allowed(module: str, known: tuple[str, ...]) -> bool:
    return module == "Init" or any(
        module == plain(name) or module.startswith(f"{plain(name)}.") for name in ("Init", *known)
    )


def _after_header(statement: Statement, submission: str, start: int) -> int:
    """Where the submission goes on after it has repeated the statement's header; `start` where it has not."""
    header = [word.text for word in code(statement.header)]
    words = [word for word in code(submission) if word.start >= start]
    if header and [word.text for word in words[: len(header)]] == header:
        return words[len(header) - 1].end
    return start


def _tamed(text: str, heartbeats: int) -> str:
    """The text with no more heartbeats and no deeper recursion than may be."""
    words = code(text)
    pieces: list[str] = []
    position = 0
    for option, name, value in zip(words, words[1:], words[2:], strict=False):
        if option.text != "set_option" or value.kind is not Kind.NUMBER:
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
