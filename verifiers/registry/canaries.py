r"""Canary files: each kind has a folder `canaries` with an `index.toml` and one file per longer submission.

    [specs.false]                      # a spec that several cases share, by its fields
    statement = "theorem target : 2 + 2 = 5 := sorry\n"

    [[case]]
    name = "evil-instance"             # its submission is the file `evil-instance.lean`, byte for byte
    spec = "false"                     # or a table with the fields
    rows = [38]                        # of the catalogue: its `[[attack]]` tables
    suspected = true                   # must be called `hack_suspected`; `honest = true`: must pass
    why = "Another addition."

A case may name another `file`, or have its submission in the index itself: `text = "..."`, or `pieces` for repeated
text and text around a file: `pieces = ["x = ", { repeat = "(", times = 5000 }, { file = "end.md" }]`. `{n}` and `{n+1}`
in repeated text count from 0, or from `start`. `edits` are pairs of old and new text; the old text must occur. Fields
of a spec can also be made of a file or of pieces: `claim = { file = "a.smt2" }`.
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
    """A known submission and the verdict that a verifier must return for it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: str
    """Name, unique within its verifier: words with dashes, like `always-equal-object`."""
    spec: SpecModel
    submission: str
    honest: bool = False
    """True if the case must pass. Any other case must not pass."""
    rows: tuple[int, ...] = ()
    """Rows of the attack catalogue that this case represents."""
    suspected: bool = False
    """True if the verdict must be `hack_suspected`, not merely a failure."""
    why: str = ""
    """Sentence on what the case attempts, or what a stricter verifier would get wrong."""


def folder_of(kind: Kind) -> Path | None:
    """Returns the folder with the canaries (known submissions) of a kind, or None if not installed: its verifier is
    then untested."""
    found = find_spec(kind.package)
    places = found.submodule_search_locations if found is not None else None
    folders = [Path(place, "canaries") for place in places or ()]
    return next((folder for folder in folders if (folder / INDEX).is_file()), None)


def cases_of(kind: Kind) -> list[Case]:
    """Returns a kind's canaries (submissions with known verdicts) in the order of its index; empty if they are not
    installed. Raises ValueError, with the name of the case, for an unreadable one."""
    folder = folder_of(kind)
    if folder is None:
        return []
    shared = specs_of(kind)
    return [_case(folder, kind, shared, entry) for entry in _index(folder)["case"]]


def specs_of(kind: Kind) -> dict[str, Any]:
    """Returns the specs that several canaries of this kind share, by name."""
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
    """Replaces file references, pieces and repetitions in a canary's data by their text, byte for byte."""
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
