"""Migrates a policy file from version 4 to version 5, with its comments, and lists the differences.

Invariants: every value is the old file's; anything else (a gate that is now required) is among the differences. Nothing
is put into force here: people sign the new file like any other edit.
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
"""Position of a line: the parts of its section's name, then its key."""
Comments = dict[Place, tuple[list[str], str]]
"""Comments by place: the lines above, and the trailing comment."""

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
    """New file content."""
    differences: tuple[str, ...]
    """Differences from the old file, one sentence each."""


def migrate(content: bytes, name: str) -> MigratedPolicy:
    """Returns a policy file rewritten for the current version; `name` is its name in messages. Raises PolicyError
    unless its version can be migrated."""
    if version_of(content) == VERSION:
        raise PolicyError(f"{name}: already version {VERSION}", hint="use the file unchanged")
    if version_of(content) not in MIGRATED:
        parse(content, name)
    parse(content, name, in_force=True)
    text = content.decode()
    old = read_toml(text)
    new, packaged = as_version_5(old), read_toml(read_content()[0].decode())
    differences = ["gates: each has a section [gates.NAME]; naming a gate requires it, like `required = true` before"]
    for gate in GATES:
        if gate.name in new["gates"]:
            continue
        if gate.never_missing:
            new["gates"][gate.name] = packaged["gates"][gate.name]
            differences.append(f"{gate.name}: now required; {gate.never_missing}")
        else:
            differences.append(f"{gate.name}: omitted, because the old file did not require it")
    gone = [rule["when"] for rule in old["promotion"]["rules"] if rule not in new["promotion"]["rules"]]
    if gone:
        differences.append(f"rules: dropped those on {', '.join(gone)}, which could not apply")
    gates = {gate.name: new["gates"][gate.name] for gate in GATES if gate.name in new["gates"]}
    first = {"version": VERSION, "promotion": new["promotion"], "gates": gates}
    new = {**first, **{key: value for key, value in new.items() if key not in first}}
    written = "\n".join(_written(new, _comments(text))) + "\n"
    if read_toml(written) != new:
        raise PolicyError(f"{name}: cannot be migrated", hint=f"copy its values into a copy of {DEFAULT}")
    parse(written.encode(), name)
    return MigratedPolicy(written, tuple(differences))


def _comments(text: str) -> Comments:
    """Returns the comments of an old policy file, keyed by the place of their line in the new one."""
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
    """Returns the TOML text of a rule in normal form; unchanged if it does not parse."""
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
    """Returns the comment after a TOML value; a `#` inside a string is not a comment."""
    for match in re.finditer("#", value):
        try:
            read_toml(f"x = {value[: match.start()]}")
        except ValueError:
            continue
        return value[match.start() :].rstrip()
    return ""


def _written(table: dict[str, Any], comments: Comments, place: Place = ()) -> list[str]:
    """Writes a TOML table with its comments: returns the lines of its own keys, then those of its subtables."""
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
