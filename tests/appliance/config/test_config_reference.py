"""The reference of the configuration comes from the model, and says something of every key."""

from __future__ import annotations

from pathlib import Path

import pytest
from tables import table

from appliance.config import reference as config_reference
from appliance.config.configuration import Settings
from appliance.settings.config_layers import ConfigError

KEYS = config_reference.keys()


def test_every_key_has_one_line_of_the_page_and_there_are_no_others() -> None:
    assert set(KEYS) == set(Settings(data=Path("/")).leaves())
    lines = [line.split("`")[1] for line in config_reference.page().splitlines() if line.startswith("| `")]
    assert sorted(lines) == sorted(KEYS)


def test_every_figure_has_a_unit_and_every_description_is_a_sentence() -> None:
    figures = [key for key in KEYS.values() if "number" in key.type]
    assert [key.name for key in figures if not key.unit] == []
    assert [key.name for key in KEYS.values() if not key.description.endswith(".") or "|" in key.description] == []


@table(
    ("name", "kind", "unit", "default", "variable"),
    [
        ("sandbox.pids", "whole number, at least 16, at most 262144", "processes", 128, "ASSAY_SANDBOX__PIDS"),
        ("sandbox.call_seconds", "number, above 0, at most 1000000000", "seconds", 2.0, "ASSAY_SANDBOX__CALL_SECONDS"),
        ("sandbox.memory_mib", "whole number, at least 48, at most 1048576", "MiB", 256, "ASSAY_SANDBOX__MEMORY_MIB"),
        ("recipe.training.clip_low", "number, above 0, at most 1", "ratio", 0.2, "ASSAY_RECIPE__TRAINING__CLIP_LOW"),
        ("threads", "whole number, at least 1", "processors", None, "ASSAY_THREADS"),
        ("model.path", "path", "", None, "ASSAY_MODEL__PATH"),
        ("log.format", "one of console, json", "", "console", "ASSAY_LOG__FORMAT"),
        ("schedule.enabled", "true or false", "", True, "ASSAY_SCHEDULE__ENABLED"),
        ("cluster.address", "text", "", None, "ASSAY_CLUSTER__ADDRESS"),
        ("data", "path", "", "~/.local/share/assay", "ASSAY_DATA"),
    ],
)
def test_a_key_is_explained_from_its_field(name: str, kind: str, unit: str, default: object, variable: str) -> None:
    (key,) = config_reference.explained(name)
    assert (key.type, key.unit, key.default, key.variable) == (kind, unit, default, variable)


def test_a_section_explains_its_keys() -> None:
    assert [key.name for key in config_reference.explained("log")] == ["log.level", "log.format"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("pids", "sandbox.pids"),
        ("sandbox.pid", "sandbox.pids"),
        ("recipe.steps", "recipe.training.steps"),
        ("modle.path", "model.path"),
        ("nothing-of-ours", "`assay config show` lists all keys"),
        ("", "`assay config show` lists all keys"),
    ],
)
def test_an_unknown_key_is_answered_with_the_nearest(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match="unknown key") as refused:
        config_reference.explained(name)
    assert meant in refused.value.hint
    assert refused.value.exit_code == 2
