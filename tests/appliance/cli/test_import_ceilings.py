"""What a command may load: a ceiling for each, so that asking stays quick. No clock has a part in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel

from appliance.config.configuration import Settings
from appliance.config.reference import docstrings
from appliance.learning.recipes.stages import TeacherRecipe

PROGRAM = """
import json, os, sys
from pathlib import Path
from pydantic import BaseModel
from appliance.cli.main import main
folder, *commands = sys.argv[1:]
for number, command in enumerate(commands):
    if os.fork():
        os.wait()
        continue
    sys.argv[1:] = command.split()
    try:
        main()
    finally:
        models = [BaseModel]
        for one in models:
            models += one.__subclasses__()
        built = {f"{one.__module__}:{one.__name__}" for one in models if one.__pydantic_complete__}
        Path(folder, str(number)).write_text(json.dumps([sorted(sys.modules), sorted(built)]))
        os._exit(0)
"""
HEAVY = {
    "torch",
    "sympy",
    "z3",
    "transformers",
    "numpy",
    "sqlalchemy",
    "rich",
    "textual",
    "uvicorn",
    "starlette",
    "httpx",
}
ASKS = HEAVY | {
    "appliance.config.configuration",
    "appliance.ledger",
    "appliance.daemon",
    "curriculum",
    "cryptography",
    "google",
}
"""Nothing that asks the daemon needs any of these to ask."""
FEW = ASKS | {"verifiers", "runtime.sandbox", "policies.envelopes", "appliance.client.messages"}
"""Nor these, where the answer holds no rollout, job or decision."""
ALONE = HEAVY | {
    "appliance.config.configuration",
    "appliance.ledger",
    "appliance.client.messages",
    "asyncio",
    "curriculum.registry",
}
"""Nor these, where the data folder is read without the daemon."""
CONFIGURED = ALONE - {"appliance.config.configuration"} | {"cryptography", "policies.gates", "runtime.sessions"}
"""Nor these, where the whole configuration is read."""
SETTINGS = {f"appliance.settings.client_config:{name}Settings" for name in ("Api", "Audit", "Client", "Log")}
CEILINGS = {
    "status": FEW,
    "stop": ASKS,
    "schedule show": FEW,
    "model history": FEW,
    "model ls": ASKS,
    "model show candidate": ASKS,
    "model compare champion candidate": ASKS,
    "report": ASKS,
    "jobs ls": ASKS,
    "jobs show job-1": ASKS,
    "cycle ls": ASKS,
    "rollouts ls": ASKS,
    "key ls": ASKS,
    "key show ada": ASKS,
    "policy budget": ASKS,
    "policy explain candidate": ASKS,
    "gateway token ls": ASKS,
    "curriculum stats": ASKS,
    "policy check": ALONE | {"cryptography", "curriculum.catalog", "policies.decide", "policies.simulate"},
    "policy show": ALONE | {"cryptography", "curriculum.catalog"},
    "audit ls": ALONE | {"curriculum", "verifiers", "policies.gates"},
    "audit verify": ALONE - {"appliance.ledger"}
    | {"curriculum", "verifiers", "policies.permissions", "runtime.sandbox"},
    "audit export FILE": ALONE - {"appliance.ledger"} | {"curriculum", "policies.permissions", "runtime.sandbox"},
    "curriculum ls": ALONE | {"cryptography", "curriculum.catalog", "verifiers.registry.spec"},
    "curriculum show digits": ALONE - {"curriculum.registry"} | {"cryptography", "curriculum.tasksets.tables"},
    "curriculum sample tables": ALONE - {"curriculum.registry"}
    | {"cryptography", "curriculum.tasksets.puzzles.knights"},
    "curriculum adapter ls": ALONE | {"cryptography"},
    "backup ls FOLDER": ALONE,
    "config show": CONFIGURED,
    "cluster status": CONFIGURED | {"runtime.broker", "runtime.cluster.cluster_sessions", "runtime.cluster.node"},
    "plan": CONFIGURED,
    "train --recipe seedling --dry-run": CONFIGURED,
    "sandbox ls": CONFIGURED,
    "submit --help": ASKS | {"curriculum.catalog"},
}
NO_FOLDER = {"backup ls FOLDER", "submit --help"}
"""Those that ask for no data folder."""
GROUPS = (
    *("audit", "backup", "cluster", "curriculum", "engine", "gateway", "jobs", "key", "model", "policy", "sandbox"),
    *("schedule", "selftest"),
)
"""Whose commands are no larger than a table of them, or name what they need when they are asked."""
HELP = ASKS | {"appliance.settings.client_config", "appliance.client.messages", "verifiers", "policies.policy"}
"""What the help of a group never needs."""


def loaded_by(commands: Sequence[str], folder: Path) -> dict[str, tuple[set[str], set[str]]]:
    """By command: the modules that were loaded when it ended, and the models whose validators were built. Each is a
    process of its own, forked from one that has loaded what all of them load."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), *commands],
        env={**os.environ, "ASSAY_DATA": str(folder / "data")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = [json.loads((folder / str(number)).read_text()) for number in range(len(commands))]
    return {command: (set(modules), set(built)) for command, (modules, built) in zip(commands, found, strict=True)}


def test_the_help_of_a_group_loads_what_none_of_its_commands_needs(tmp_path: Path) -> None:
    loaded = loaded_by([f"{group} --help" for group in GROUPS], tmp_path)
    assert {group: HELP & modules for group, (modules, _) in loaded.items() if HELP & modules} == {}


def test_a_command_loads_nothing_above_its_ceiling(tmp_path: Path) -> None:
    loaded = loaded_by([*CEILINGS], tmp_path)
    above = {command: CEILINGS[command] & modules for command, (modules, _) in loaded.items()}
    assert {command: modules for command, modules in above.items() if modules} == {}
    asks = {command for command, (modules, _) in loaded.items() if "appliance.settings.client_config" in modules}
    assert asks == CEILINGS.keys() - NO_FOLDER
    for command, (_, built) in loaded.items():
        if CEILINGS[command] >= ASKS:
            made = {one for one in built - SETTINGS if one.startswith(("appliance.client.m", "appliance.records."))}
            assert made <= {"appliance.records.training:RolloutFilter"}, f"{command} built it although it read nothing"


def parts_of(model: type[BaseModel]) -> list[type[BaseModel]]:
    """A model, and those of its sections."""
    shapes = (field.annotation for field in model.model_fields.values())
    sections = [one for one in shapes if isinstance(one, type) and issubclass(one, BaseModel)]
    return [model, *(part for one in sections for part in parts_of(one))]


def test_no_settings_are_read_from_source_when_they_are_loaded_and_each_field_has_its_docstring_when_asked() -> None:
    for part in [*parts_of(Settings), TeacherRecipe]:
        assert not part.model_config.get("use_attribute_docstrings"), part
        values = {name for name, field in part.model_fields.items() if not is_section(field.annotation)}
        assert values <= set(docstrings(part)), part


def is_section(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
