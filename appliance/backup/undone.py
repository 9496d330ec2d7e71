"""Names each governance act that a restore would undo: revocations, rejections, rollbacks, admissions, policies.

Invariants: every kind of entry is named unless it is listed as routine here, so a new kind is never passed over. The
log is text of a folder that may have been written by anybody: an unreadable entry is named as such.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from appliance.backup.store import BackupError
from appliance.text.printable import printable
from policies import audit

ROUTINE = frozenset(
    {
        "answers",
        "artifact",
        "audit.completed",
        "canary",
        "canary.began",
        "canary.share",
        "checkpoint",
        "cycle",
        "daemon.start",
        "evaluation",
        "gateway.token.made",
        "grant.refused",
        "job.ended",
        "key.refused",
        "ledger.pruned",
        "meaning.refused",
        "policy.refused",
        "promotion.refused",
        "step",
        "word.refused",
    }
)
"""Kinds of entries that decide nothing about what counts or serves later."""
MOST_CHARS = 300
"""Maximum characters shown of an entry."""
SHOWN = 40
"""Maximum acts listed in the refusal; the document of `--json` has all."""
DIGITS = 8


class UndoneError(BackupError):
    """A restore would undo governance acts that nobody confirmed."""

    exit_code = 4


def undone(restored: bytes, present: bytes) -> list[str]:
    """Returns a sentence for each governance act in the present audit log that is not in the restored one."""
    kept, lines = restored.splitlines(keepends=True), present.splitlines(keepends=True)
    same = next((at for at, pair in enumerate(zip(kept, lines, strict=False)) if pair[0] != pair[1]), None)
    rest = lines[min(len(kept), len(lines)) if same is None else same :]
    return [text for line in rest if (text := _said(line))]


def confirmation(acts: Sequence[str]) -> str:
    """Returns the text that confirms undoing exactly these acts."""
    return hashlib.sha256("\n".join(acts).encode()).hexdigest()[:DIGITS]


def require_confirmed(acts: Sequence[str], given: str | None) -> None:
    """Raises UndoneError, which names each act, unless `given` is their confirmation."""
    wanted = confirmation(acts)
    if not acts or given == wanted:
        return
    more = [f"and {len(acts) - SHOWN} more (see `assay audit show`)"] if len(acts) > SHOWN else []
    listed = "\n  ".join((*acts[:SHOWN], *more))
    why = "nothing was changed: the restore would undo" if given is None else "nothing was changed: other acts than"
    raise UndoneError(
        f"{why}\n  {listed}",
        hint=f"use a newer backup; to undo these {len(acts)} acts, repeat it with `--undo {wanted}`",
    )


def _said(line: bytes) -> str:
    try:
        entry = audit.read(line)
    except ValueError:
        return "an unreadable entry of the present log"
    if entry.kind in ROUTINE:
        return ""
    try:
        text = _act(entry.kind, entry.what)
    except (KeyError, TypeError, AttributeError):
        text = ""
    return printable(
        f"entry {entry.number}, {entry.at[:19]}: {text or _fields(entry.kind, entry.what)}", limit=MOST_CHARS
    )


def _act(kind: str, what: dict[str, Any]) -> str:
    match kind:
        case "key.revoked":
            return f"the key {what['key']} of {what['person']} was revoked by {', '.join(what['by'])}"
        case "key.admitted":
            return f"the key {what['key']} of {what['person']} was admitted by {', '.join(what['by']) or 'nobody'}"
        case "word":
            said = what["word"]
            return f"{said['person']} signed: {said['verdict']} {said['candidate'][:12]}"
        case "decision":
            made = what["decision"]
            return f"the decision to {made['outcome']} {made['candidate'][:12]}: {made['reason']}"
        case "aliases":
            moved = ", ".join(f"{name} became {(to or 'empty')[:12]}" for name, to in what["after"].items())
            return f"{moved}: {what['reason']}"
        case "policy.signed":
            return f"the policy {what['file'][:12]} came into force, signed by {', '.join(what['by'])}"
        case "gateway.token.revoked":
            return f"the gateway token {what['name']} was revoked"
    return ""


def _fields(kind: str, what: dict[str, Any]) -> str:
    plain = (f"{name} {value}" for name, value in what.items() if isinstance(value, str | bool | int | float))
    return f"{kind}: {', '.join(plain)}"
