"""Assembles the file to compile: the statement's context followed by the model's text without comments.

Invariants: pure. The imports are the statement's and those that the spec allows; `maxHeartbeats` is at most what the
spec allows. Definitions of the statement that the submission repeats verbatim are dropped, because it imports them. A
submission that repeats the statement's whole context is compiled as a file of its own; any other follows that context.
No verdict depends on which: the check compares the resulting theorem.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from verifiers.lean.reading import commands
from verifiers.lean.reading.commands import Command, Declared
from verifiers.lean.reading.context import INCLUDES, VARIABLES, is_context, is_scope, text_of
from verifiers.lean.reading.lexer import Edit, LeanToken, TokenKind, edited, plain
from verifiers.lean.reading.screening import ScreeningFinding
from verifiers.lean.spec import LeanSpec
from verifiers.lean.statement import STATEMENT, LeanStatement

HEARTBEATS = frozenset(("maxHeartbeats", "synthInstance.maxHeartbeats"))
DEPTH, MOST_DEPTH = "maxRecDepth", 20_000


@dataclass(frozen=True)
class LeanSource:
    text: str
    line_shift: int
    """Offset from a line of `text` to the submission's own line."""
    modules: tuple[str, ...]
    """Imports of `text`, one line each, at its start."""


def assemble(
    spec: LeanSpec, statement: LeanStatement, submission: str, words: Sequence[LeanToken]
) -> LeanSource | ScreeningFinding:
    """Builds the Lean file to compile from a submission and the statement's context, or returns the finding that
    forbids it. `words` are the submission's code."""
    own = commands.imports(words)
    if own.odd:
        return ScreeningFinding(own.odd, "a header that is more than plain imports", 1, 1, own.odd == "prelude")
    for module in own.modules:
        if not _allowed(plain(module), (*statement.imports, *spec.imports)):
            return ScreeningFinding(f"import {module}", "an import that the statement does not have", 1, 1, False)
    modules = dict.fromkeys((*statement.imports, *([STATEMENT] if statement.defines else []), *own.modules))
    body = [word for word in words if word.start >= own.end]
    context, edits = _fitted(spec, statement, submission, body)
    head = "".join(f"import {module}\n" for module in modules)
    head += "".join(text_of(command, statement.source) for command in context)
    text = edited(submission, own.end, len(submission), edits)
    return LeanSource(head + text, submission.count("\n", 0, own.end) - head.count("\n"), tuple(modules))


def _fitted(
    spec: LeanSpec, statement: LeanStatement, submission: str, body: Sequence[LeanToken]
) -> tuple[Sequence[Command], list[Edit]]:
    """Returns the statement's commands to put before a submission, and the edits to the submission's text."""
    own = commands.commands(submission, body)
    theorem = _theorem(statement, submission, body)
    repeated = _in_order(own, statement.header.declared())
    context: Sequence[Command] = statement.header.context
    alone = theorem is not None and theorem.full_name == statement.full_name
    scopes = [command for command in context if is_scope(command)]
    own_scopes = [command for command in _leading(own, repeated) if is_scope(command)]
    edits: list[Edit] = []
    if alone and len(_in_order(own, context)) == len(context):
        context = ()  # it is a file of its own
    elif theorem is not None and alone and scopes and plain(theorem.name.text) == plain(statement.full_name):
        edits.append((theorem.name.start, theorem.name.start, "_root_."))  # it names the theorem in full
    elif alone and [command.says for command in own_scopes] != [command.says for command in scopes]:
        context = [command for command in context if not is_scope(command)]  # it has others around the theorem
    restated = theorem is not None and theorem.says != statement.says
    if restated:
        without = INCLUDES | (VARIABLES if theorem is not None and theorem.says[:1] == (".",) else frozenset())
        context = [command for command in context if command.keyword not in without]
    repeated += _again(_leading(own, repeated), context)
    dropped = {word.start for command in repeated for word in command.words}
    edits += [(command.start, command.end, _lines_of(submission, command)) for command in repeated]
    most = max(spec.heartbeats, *_heartbeats(statement.header.commands), *_heartbeats([statement.theorem]))
    edits += _tamed([word for word in body if word.start not in dropped], most)
    attached = statement.theorem.words[: statement.theorem.attached]
    if theorem is not None and attached:
        command = next(one for one in own if one.end >= theorem.name.end)
        includes = any(word.text in INCLUDES for word in attached)
        if not command.attached and command.start not in dropped and not (restated and includes):
            edits.append((command.start, command.start, "".join(f"{word.text} " for word in attached)))
    return context, edits


def _again(own: Sequence[Command], context: Sequence[Command]) -> list[Command]:
    """Returns the submission's leading commands that the context already has."""
    universes = {word.text for command in context if command.keyword == "universe" for word in command.words}
    found = {command.start: command for command in _in_order(own, context)}
    for command in own:
        if command.keyword == "universe" and universes.issuperset(word.text for word in command.words):
            found[command.start] = command
    return list(found.values())


def _theorem(statement: LeanStatement, submission: str, body: Sequence[LeanToken]) -> Declared | None:
    """Returns the submission's theorem with the statement's full name, or else with its last part; else None."""
    found = commands.theorems(submission, body)
    last = commands.parts_of(statement.full_name)[-1:]
    full = [one for one in found if one.full_name == statement.full_name]
    return next(reversed(full or [one for one in found if commands.parts_of(one.full_name)[-1:] == last]), None)


def _in_order(own: Iterable[Command], wanted: Iterable[Command]) -> list[Command]:
    """Returns the commands of a submission that repeat commands of `wanted` in the same order; some may be missing."""
    places: dict[tuple[str, ...], list[int]] = {}
    for at, command in enumerate(wanted):
        places.setdefault(command.says, []).append(at)
    found, after = [], -1
    for command in own:
        later = [at for at in places.get(command.says, ()) if at > after]
        if later:
            after = later[0]
            found.append(command)
    return found


def _leading(own: Iterable[Command], repeated: Sequence[Command]) -> list[Command]:
    """Returns the submission's new context commands before its first new declaration."""
    known = {command.start for command in repeated}
    found = takewhile(lambda command: command.start in known or is_context(command), own)
    return [command for command in found if command.start not in known]


def _lines_of(text: str, command: Command) -> str:
    """Returns the command's line ends only, so that later lines keep their numbers."""
    return "\n" * text.count("\n", command.start, command.end)


def _allowed(module: str, known: tuple[str, ...]) -> bool:
    return module == "Init" or any(
        module == plain(name) or module.startswith(f"{plain(name)}.") for name in ("Init", *known)
    )


def _heartbeats(trusted: Iterable[Command]) -> list[int]:
    """Returns the heartbeat limits that the statement's own commands set; 0 if none."""
    return [
        _number(value.text)
        for command in trusted
        for name, value in pairwise(command.words)
        if plain(name.text) in HEARTBEATS and value.kind is TokenKind.NUMBER
    ] or [0]


def _tamed(words: Sequence[LeanToken], heartbeats: int) -> list[Edit]:
    """Returns edits that cap the heartbeats and recursion depth that a submission sets."""
    edits: list[Edit] = []
    for option, name, value in zip(words, words[1:], words[2:], strict=False):
        if option.text != "set_option" or value.kind is not TokenKind.NUMBER:
            continue
        limit = heartbeats if plain(name.text) in HEARTBEATS else MOST_DEPTH if plain(name.text) == DEPTH else None
        if limit is not None and not 0 < _number(value.text) <= limit:
            edits.append((value.start, value.end, str(limit)))
    return edits


def _number(text: str) -> int:
    """Parses a Lean number; 0 if unreadable."""
    try:
        return int(text.replace("_", ""), 0 if text[:2].lower() in ("0x", "0b", "0o") else 10) if len(text) < 20 else 0
    except ValueError:
        return 0
