"""Pass rates that `assay curriculum measure` found, kept in the data folder for the sampler and for lists.

Invariants: a model is known by its weights, so that a base, its copy in the ledger and its folder share measurements;
an attempt counts only while its taskset has the measured version, and a lost one never. Rates of one model say nothing
of another: a night that starts from other weights does not use them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from appliance.errors import UsageError
from appliance.evaluation.plan import ATTEMPTS, PLAN, EvaluationAttempt, EvaluationPlan
from curriculum.difficulty import Place, Seen
from curriculum.registry import TASKSETS
from runtime.model import FrozenModel

MEASURED = "measured"
"""Subfolder of the data folder."""
DIGITS = 12
"""Digits of a digest that name a model in lists."""
_DIGEST = re.compile("[0-9a-f]{64}")
MANIFEST, WEIGHTS = "manifest.json", ".safetensors"


def weights_key(folder: Path) -> str:
    """Returns the SHA-256 of a model folder's weights: of the names and digests of its weight files, which a manifest
    gives without reading them. Raises OSError, ValueError for an invalid manifest, and UsageError without weights."""
    manifest = folder / MANIFEST
    if manifest.is_file():
        found = {name: one["sha256"] for name, one in json.loads(manifest.read_bytes())["files"].items()}
    else:
        found = {}
        for path in folder.glob(f"*{WEIGHTS}"):
            with path.open("rb") as file:
                found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    weights = sorted(one for one in found.items() if one[0].endswith(WEIGHTS))
    if not weights:
        raise UsageError(f"{folder} has no {WEIGHTS} file", "name a model's folder")
    return hashlib.sha256(json.dumps(weights).encode()).hexdigest()


def name_key(model: str) -> str:
    """Returns the key of a model behind an endpoint, which is known by its name only."""
    return hashlib.sha256(f"endpoint {model}".encode()).hexdigest()


def folder_of(data: Path, key: str, plan: EvaluationPlan) -> Path:
    """Returns the folder of a measurement, which the same plan continues."""
    return data / MEASURED / key / plan.digest[:16]


def seen_in(data: Path, key: str) -> list[Seen]:
    """Sums the judged attempts of all measurements of a model, by place; empty without any. Skips unreadable plans and
    attempts: no estimate is better than a wrong one, or than a night that fails."""
    passed: dict[Place, int] = defaultdict(int)
    judged: dict[Place, int] = defaultdict(int)
    for folder in sorted((data / MEASURED / key).glob("*/")):
        for one in _attempts(folder):
            place = Place(one.taskset, one.level, one.topic)
            passed[place] += one.outcome == "right"
            judged[place] += 1
    return [Seen(place, passed[place], judged[place]) for place in sorted(judged)]


class MeasuredPlace(FrozenModel):
    """Pass count of one model, by topic and level."""

    model: str
    """First digits of the digest, or the model's name at an endpoint."""
    topic: str
    level: int
    passed: int
    judged: int


def measured_models(data: Path, taskset: str) -> list[MeasuredPlace]:
    """Returns what was measured of all models on a taskset, as `seen_in`."""
    return [
        MeasuredPlace(
            model=_model_of(folder), topic=one.place.topic, level=one.place.level, passed=one.passed, judged=one.judged
        )
        for folder in sorted((data / MEASURED).glob("*/"))
        for one in seen_in(data, folder.name)
        if one.place.taskset == taskset
    ]


def _model_of(folder: Path) -> str:
    """Returns the model that the newest readable plan of a model's measurements names; else its key's first digits."""
    for path in sorted(folder.glob(f"*/{PLAN}"), key=lambda path: path.stat().st_mtime, reverse=True):
        with suppress(OSError, ValidationError):
            model = EvaluationPlan.model_validate_json(path.read_bytes()).model
            return model[:DIGITS] if _DIGEST.fullmatch(model) else model
    return folder.name[:DIGITS]


def _attempts(folder: Path) -> Iterable[EvaluationAttempt]:
    try:
        plan = EvaluationPlan.model_validate_json((folder / PLAN).read_bytes())
        lines = (folder / ATTEMPTS).read_bytes().splitlines(keepends=True)
    except (OSError, ValidationError):
        return
    current = {
        name
        for name, _, version in (one.partition("@") for one in plan.tasksets)
        if name in TASKSETS and str(TASKSETS[name].version) == version
    }
    newest: dict[tuple[str, int], EvaluationAttempt] = {}
    for line in lines:
        try:
            one = EvaluationAttempt.model_validate_json(line)
        except ValidationError:  # a partial last line
            continue
        if one.taskset in current:
            newest[one.place] = one
    yield from (one for one in newest.values() if one.outcome != "lost")
