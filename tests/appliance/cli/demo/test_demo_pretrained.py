"""The demonstration with a pretrained model, in its shortest form: import, examples, one step of training, evaluation.

With SmolLM2-135M as `install.sh --with smollm2` keeps it; without it these tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from broken_models import sound
from forked_commands import ForkedCommand

from appliance.cli.demo.own_model import in_own_folder, shortened
from appliance.config.configuration import Settings
from appliance.ledger.sqlite import SqliteLedger
from appliance.models.local_models import find_base

pytestmark = pytest.mark.timeout(900)
SHORT = {
    "RECIPE__TASKSETS": '["arithmetic", "linear", "divisibility"]',
    "RECIPE__WARM_START__STEPS": 1,
    "RECIPE__WARM_START__BATCH": 2,
    "RECIPE__WARM_START__DEMONSTRATIONS": 8,
    "RECIPE__WARM_START__VALIDATION_ITEMS": 1,
    "RECIPE__TRAINING__STEPS": 1,
    "RECIPE__TRAINING__TASKS_PER_STEP": 1,
    "RECIPE__TRAINING__ROLLOUTS_PER_TASK": 2,
    "RECIPE__TRAINING__KEEP": 2,
    "RECIPE__TRAINING__REFILLS": 0,
    "RECIPE__TRAINING__WATCH_ITEMS": 1,
    "RECIPE__EVALUATION__SEALED_ITEMS": 3,
    "RECIPE__EVALUATION__UNSOLVABLE_ITEMS": 1,
    "RECIPE__AGENT__MAX_TOKENS": 160,
    "JOBS__ATTEMPTS": 1,
    "SANDBOX__READY": 1,
    "SCHEDULE__ENABLED": "false",
}


@dataclass(frozen=True)
class Shown:
    code: int
    out: str
    error: str
    found: dict[str, Any]
    data: Path


def demo(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name != "ASSAY_DATA"}
    environ |= {f"ASSAY_{name}": str(value) for name, value in SHORT.items()}
    environ |= {"XDG_DATA_HOME": str(home)}
    ran = ForkedCommand(("demo", "--model", *arguments), environ)
    out, error = ran.communicate(900)
    return subprocess.CompletedProcess(ran.args, ran.wait(), out.decode(), error.decode())


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    if not list(Path(f"{sys.prefix}-smollm2").glob("*.gguf")):
        pytest.skip("there is no smollm2: ./install.sh --with smollm2 fetches it")
    home = tmp_path_factory.mktemp("pretrained")
    out = home / "result.json"
    ran = demo(home, "smollm2", "--json", str(out))
    assert out.exists(), ran.stdout + ran.stderr
    return Shown(ran.returncode, ran.stdout, ran.stderr, json.loads(out.read_text()), home / "assay-smollm2")


def test_one_command_imports_teaches_trains_and_evaluates_in_a_folder_of_its_own(shown: Shown) -> None:
    assert "Traceback" not in shown.error
    assert "smollm2 is registered" in shown.out
    with SqliteLedger(shown.data / "ledger.sqlite3") as ledger:
        (cycle,) = ledger.cycles()
        stages = {one.stage: one for one in ledger.checkpoints(cycle=cycle.id)}
        assert cycle.state.value == "done"
        assert {"imported", "warm_start"} <= stages.keys()
        assert stages["warm_start"].parent == stages["imported"].manifest


def test_it_shows_the_model_as_it_came_after_the_examples_and_after_the_verdicts(shown: Shown) -> None:
    found = shown.found
    assert found["sealed_items"] == 3
    assert found["success_base"] is not None
    assert found["champion"] != found["candidate"] or "nothing was learned" in shown.out
    assert sum(row["items"] for row in found["families"]) == 3
    assert all(row["base"] is not None for row in found["families"])
    assert found["tool_calls_outside_sandbox"] == 0
    for text in ("no examples", "the pretrained model", "sealed questions", "model use smollm2"):
        assert text in shown.out.replace("\n", " "), text


def test_a_second_run_imports_and_repeats_nothing(shown: Shown) -> None:
    again = demo(shown.data.parent, "smollm2")
    assert again.returncode == shown.code
    assert "already ran here" in again.stdout
    assert "registered" not in again.stdout


def test_a_base_that_was_imported_before_is_used_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    base = tmp_path / "assay" / "bases" / "mine"
    base.parent.mkdir(parents=True)
    sound(base)
    usual = Settings.load()
    own = in_own_folder(usual, "mine")
    assert own.data == tmp_path / "assay-mine"
    short = shortened(own, "mine", find_base("mine", usual.data))
    assert (short.model.path, short.data) == (base, own.data)
    assert short.recipe.warm_start.own_model


@pytest.mark.parametrize(
    ("model", "said"),
    [("no-such-model", "no-such-model"), ("ollama:none", "Ollama has no model none"), ("a b@gguf:x", "invalid model")],
)
def test_an_unknown_model_is_refused_on_one_screen_before_anything_begins(
    model: str, said: str, tmp_path: Path
) -> None:
    ran = demo(tmp_path, model)
    assert ran.returncode == 2
    assert said in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    assert not list(tmp_path.glob("*/ledger.sqlite3"))
