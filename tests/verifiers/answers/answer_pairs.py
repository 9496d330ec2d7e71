"""Pairs of an expected and a submitted answer, and whether they are equal: hard ones of every kind.

`ours` are our own; `others` restate what was published as a mistake of another verifier, with the number of its issue.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verifiers.answers.spec import AnswerSpec

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Pair:
    id: str
    category: str
    spec: AnswerSpec
    prediction: str
    equal: bool
    note: str


def pairs(name: str) -> list[Pair]:
    """`ours` or `others`."""
    lines = (DATA / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [_pair(json.loads(line)) for line in lines]


def _pair(row: dict[str, Any]) -> Pair:
    spec = AnswerSpec(expected=row["gold"], **row.get("spec", {}))
    return Pair(row["id"], row["category"], spec, row["prediction"], row["equal"], row["note"])
