"""Settings of a demonstration with a pretrained model instead of the embedded one (`assay demo --model`).

They are those of `assay model use`, shortened so that a demonstration takes minutes on a GPU and less than an hour on
two cores; what the configuration sets comes first. A model has its demonstration in a data folder of its own, beside
the default one, because all nights in one folder continue from one model. The model is imported and planned for in
processes of their own: only a process with a single thread can drop root's rights, and torch starts others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import typer

from appliance.config.configuration import Settings
from appliance.errors import AssayError, ExitCode
from appliance.models.local_models import BASES, Stores, find_base, locate, stores
from curriculum.names import CALCULATORS

TASKSETS = (*CALCULATORS, "divisibility", "modular_arithmetic")
"""The last two have no demonstrations: success there was carried over by the warm start, or learned from verdicts."""
SHORT: dict[str, Any] = {
    "recipe.tasksets": TASKSETS,
    "recipe.warm_start.own_model": True,
    "recipe.training.steps": 16,
    "recipe.training.warmup_steps": 2,
    "recipe.training.watch_every": 8,
    "recipe.training.watch_items": 48,
    "recipe.training.checkpoint_every": 4,
    "recipe.evaluation.sealed_items": 256,
    "recipe.agent.max_tokens": 256,
}
"""Differences from the settings that nights take, by dotted key."""
RATE = "recipe.training.learning_rate"
FASTER = 5.0
"""Factor of the learning rate: a demonstration has few steps."""


def in_own_folder(settings: Settings, model: str) -> Settings:
    """Returns the settings with the data folder of this model's demonstration: `--data` if given, or one beside the
    default. Raises UsageError for an invalid name or an unknown source."""
    if settings.origins()["data"] != "default":
        return settings
    name = model if find_base(model, settings.data) else locate(model, _places()).name
    return Settings.load({"data": str(settings.data.with_name(f"{settings.data.name}-{name}"))})


def shortened(settings: Settings, model: str, registered: Path | None = None) -> Settings:
    """Returns the settings of a short night that starts from the model: the folder of a `registered` base, or a source
    of `assay model import`, which is imported first unless it was. Raises UsageError for an unknown source, AssayError
    (1) if no way of training fits, and Exit where a command has said what is wrong."""
    data = str(settings.data)
    folder = registered if registered is not None and registered.is_dir() else find_base(model, settings.data)
    if folder is None:
        name = locate(model, _places()).name
        if find_base(name, settings.data) is None:
            _run("model", "import", model, "--data", data)
        folder = settings.data / BASES / name
    planned = json.loads(_run("plan", str(folder), "--data", data, "--json", shown=False, accepts=(0, 1)))
    if not planned["recommended"]:
        raise AssayError(planned["do"], f"run `assay plan {folder}` to see what is missing", ExitCode.FAILED_VERDICT)
    planned["recommended"][RATE] *= FASTER
    given = {key for key, place in settings.origins().items() if place != "default"}
    values = {key: value for key, value in {**planned["recommended"], **SHORT}.items() if key not in given}
    return Settings.load({**values, "model.path": str(folder), "data": data})


def _run(*arguments: str, shown: bool = True, accepts: tuple[int, ...] = (0,)) -> str:
    """Runs a command of this program in another process; returns its output unless `shown`."""
    command = [sys.executable, "-I", "-m", "appliance.cli.main", *arguments]
    found = subprocess.run(command, stdout=None if shown else subprocess.PIPE, text=True, check=False)
    if found.returncode not in accepts:
        raise typer.Exit(found.returncode)
    return found.stdout or ""


def _places() -> Stores:
    return stores(os.environ, Path.home())
