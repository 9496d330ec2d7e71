"""Canaries as files: a folder `canaries` beside each kind, with one `index.toml` and a file for each longer submission.

    [specs.false]                      # a spec that several cases share, by its fields
    statement = "theorem target : 2 + 2 = 5 := sorry\\n"

    [[case]]
    name = "evil-instance"             # its submission is the file `evil-instance.lean`, to the last byte
    spec = "false"                     # or a table with the fields
    rows = [38]                        # of the catalogue: its `[[attack]]` tables
    suspected = true                   # must be called `hack_suspected`; `honest = true`: must pass
    why = "Another addition."

A case may name another `file`, or have its submission in the index itself: `text = "..."`, or `pieces` where signs are
repeated or stand around a file: `pieces = ["x = ", { repeat = "(", times = 5000 }, { file = "end.md" }]`. `{n}` and
`{n+1}` in a text that is repeated count from 0, or from `start`. `edits` are pairs: each first part, which has to
occur, becomes the second. Fields of a spec can be made of a file or of pieces, too: `claim = { file = "a.smt2" }`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from verifiers.contract.kinds import Kind
from verifiers.contract.spec_data import SpecModel
from verifiers.registry.spec import SPEC

INDEX = "index.toml"


class Case(BaseModel):
    """A known submission and what a verifier has to say of it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: str
    """Unique within its verifier; words with dashes: `always-equal-object`."""
    spec: SpecModel
    submission: str
    honest: bool = False
    """Whether it has to pass. Everything else must not, whatever else is said of it."""
    rows: tuple[int, ...] = ()
    """Rows of the attack catalogue that this case represents."""
    suspected: bool = False
    """Whether it has to be called `hack_suspected`, not merely refused."""
    why: str = ""
    """What it tries, or what a stricter verifier would get wrong: a sentence."""


def folder_of(kind: Kind) -> Path | None:
    """Where the canaries of this kind lie; None where this installation has none: nothing is known of its verifier."""
    found = find_spec(kind.package)
    places = found.submodule_search_locations if found is not None else None
    folders = [Path(place, "canaries") for place in places or ()]
    return next((folder for folder in folders if (folder / INDEX).is_file()), None)


def cases_of(kind: Kind) -> list[Case]:
    """The canaries of this kind, in the order of its index; none where this installation has none. Raises ValueError,
    with the name of the case, for one that cannot be read."""
    folder = folder_of(kind)
    if folder is None:
        return []
    shared = specs_of(kind)
    return [_case(folder, kind, shared, entry) for entry in _index(folder)["case"]]


def specs_of(kind: Kind) -> dict[str, Any]:
    """The specs that several canaries of this kind share, by name."""
    folder = folder_of(kind)
    if folder is None:
        return {}
    return {name: _spec(folder, kind, fields) for name, fields in _index(folder).get("specs", {}).items()}


def _index(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / INDEX).read_text(encoding="utf-8"))


def _case(folder: Path, kind: Kind, shared: dict[str, Any], entry: dict[str, Any]) -> Case:
    about = dict(entry)
    try:
        spec = about.pop("spec")
        made_of = {name: about.pop(name) for name in ("text", "file", "pieces", "edits") if name in about}
        edits = made_of.pop("edits", ())
        submission = _expanded(folder, made_of.get("text", made_of or {"file": f"{about['name']}{kind.suffix}"}))
        for old, new in edits:
            if old not in submission:
                raise ValueError(f"{old!r} does not occur")
            submission = submission.replace(old, new)
        spec = shared[spec] if isinstance(spec, str) else _spec(folder, kind, spec)
        return Case.model_validate({**about, "spec": spec, "submission": submission})
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise ValueError(f"{folder / INDEX}: the case {entry.get('name', '?')}: {error}") from error


def _spec(folder: Path, kind: Kind, fields: dict[str, Any]) -> Any:
    return SPEC.validate_python({"kind": kind.name, **_expanded(folder, fields)})


def _expanded(folder: Path, value: Any) -> Any:
    """With the text of files, with every byte as it stands, and of pieces."""
    match value:
        case list():
            return [_expanded(folder, each) for each in value]
        case {"file": name, **other} if not other:
            return (folder / name).read_bytes().decode("utf-8")
        case {"pieces": pieces, **other} if not other:
            return "".join(_expanded(folder, pieces))
        case {"repeat": text, "times": times, **other} if not other.keys() - {"start"}:
            return "".join(_repeated(text, times, other.get("start", 0)))
        case dict():
            return {name: _expanded(folder, each) for name, each in value.items()}
        case _:
            return value


def _repeated(text: str, times: int, start: Any) -> Iterator[str]:
    if "{n" not in text:
        yield text * times
        return
    for number in range(start, start + times):
        yield text.replace("{n+1}", str(number + 1)).replace("{n}", str(number))
