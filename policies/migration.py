"""Writes a policy file of version 4 as one of version 5 that means the same, with its comments, and says what differs.

What always holds: every value is the old file's; what is not from there (a gate that no file may leave out any more) is
among the differences. Nothing is put into force here: people sign the new file like any other edit.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from policies.errors import PolicyError
from policies.gates.registry import GATES
from policies.policy import DEFAULT, MIGRATED, VERSION, as_version_5, parse, read_content, version_of
from policies.toml_files import read_toml

Place = tuple[str, ...]
"""Where a line stands: the parts of its section's name, then its key."""
Comments = dict[Place, tuple[list[str], str]]
"""Of each place: the lines above it, and what stands behind it."""

_MOVED = {
    ("promotion", "integrity", "max_age_hours"): ("gates", "freshness", "max_age_hours"),
    ("promotion", "probes", "egress"): ("gates", "egress"),
    ("promotion", "probes", "refusal"): ("gates", "refusal"),
    ("promotion", "probes", "min_refused"): ("gates", "refusal", "min_refused"),
}
_HEAD = re.compile(r"\s*\[([A-Za-z0-9_.-]+)\]\s*(#.*)?")
_ROW = re.compile(r"\s*(\{[^#]*\}),?\s*(#.*)?")
_KEY = re.compile(r"""\s*(?:([A-Za-z0-9_-]+)|"([^"\\]+)")\s*=(.*)""")


@dataclass(frozen=True)
class MigratedPolicy:
    text: str
    """The new file."""
    differences: tuple[str, ...]
    """A sentence for each."""


def migrate(content: bytes, name: str) -> MigratedPolicy:
    """The file as one of this version; `name` is what messages call it. Raises PolicyError for what is no file of a
    version that can be migrated."""
    if version_of(content) == VERSION:
        raise PolicyError(f"{name}: it is of version {VERSION} already", hint="it needs no migration")
    if version_of(content) not in MIGRATED:
        parse(content, name)
    parse(content, name, in_force=True)
    text = content.decode()
    old = read_toml(text)
    new, packaged = as_version_5(old), read_toml(read_content()[0].decode())
    differences = ["gates: each has a section [gates.NAME]; a named gate is asked, as by `required = true` before"]
    for gate in GATES:
        if gate.name in new["gates"]:
            continue
        if gate.never_missing:
            new["gates"][gate.name] = packaged["gates"][gate.name]
            differences.append(f"{gate.name}: asked from now on; {gate.never_missing}")
        else:
            differences.append(f"{gate.name}: left out, because the old file did not ask for it")
    gone = [rule["when"] for rule in old["promotion"]["rules"] if rule not in new["promotion"]["rules"]]
    if gone:
        differences.append(f"rules: without those on {', '.join(gone)}, which could not apply")
    gates = {gate.name: new["gates"][gate.name] for gate in GATES if gate.name in new["gates"]}
    first = {"version": VERSION, "promotion": new["promotion"], "gates": gates}
    new = {**first, **{key: value for key, value in new.items() if key not in first}}
    written = "\n".join(_written(new, _comments(text))) + "\n"
    if read_toml(written) != new:
        raise PolicyError(f"{name}: it cannot be migrated as it is", hint=f"carry it over to a copy of {DEFAULT}")
    parse(written.encode(), name)
    return MigratedPolicy(written, tuple(differences))


def _comments(text: str) -> Comments:
    """The old file's comments, by the new place of the line that they belong to."""
    found: Comments = {}
    section: Place = ()
    above: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            above.append(line)
            continue
        head, key, row = _HEAD.fullmatch(line), _KEY.fullmatch(line), _ROW.fullmatch(line)
        if head:
            section = tuple(head[1].split("."))
        if row:
            found[("rule", _row(row[1]))] = (above, row[2] or "")
        elif head or key:
            place = section if key is None else (*section, key[1] or key[2])
            behind = (head[2] or "") if head else _comment_of(key[3]) if key else ""
            found[_new_place(place)] = (above, behind)
        if line.strip():
            above = []
        elif above:
            above.append("")
    return found


def _row(text: str) -> str:
    """A rule in its one form."""
    try:
        return _toml(read_toml(f"x = {text}")["x"])
    except ValueError:
        return text


def _new_place(place: Place) -> Place:
    if place in _MOVED:
        return _MOVED[place]
    if len(place) > 1 and place[0] == "promotion" and place[1] != "rules":
        return ("gates", *place[1:])
    return place


def _comment_of(value: str) -> str:
    """The comment behind a value; a sharp in a text is none."""
    for match in re.finditer("#", value):
        try:
            read_toml(f"x = {value[: match.start()]}")
        except ValueError:
            continue
        return value[match.start() :].rstrip()
    return ""


def _written(table: dict[str, Any], comments: Comments, place: Place = ()) -> list[str]:
    """The lines of a table: its own keys first, then the tables in it."""
    lines: list[str] = []

    def add(at: Place, text: str, column: int = 30) -> None:
        above, behind = comments.get(at, ([], ""))
        lines.extend([*above, f"{text:<{column - 2}}  {behind}" if behind else text])

    if place and (place in comments or not table or any(not isinstance(value, dict) for value in table.values())):
        lines.append("")
        add(place, f"[{'.'.join(place)}]")
    for key, value in table.items():
        if key == "rules":
            add((*place, key), "rules = [")
            for rule in value:
                add(("rule", _toml(rule)), f"  {_toml(rule)},", 68)
            lines.append("]")
        elif not isinstance(value, dict):
            add((*place, key), f"{_toml(key) if not key.isidentifier() else key} = {_toml(value)}")
    for key, value in table.items():
        if isinstance(value, dict):
            lines += _written(value, comments, (*place, key))
    return lines


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value) if isinstance(value, (str, bool)) else repr(value)
