"""`assay train` at a real daemon: a training in stages goes on after a kill, and is one at a time."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from appliance.client import ApiError
from appliance.client.messages import StartTraining
from appliance.config.configuration import ModelSettings, Settings
from appliance.daemon.contract import RequestError
from appliance.daemon.coordination.core import Core
from appliance.learning.checkpoints import publish
from appliance.planning.training_recipes import read_recipe
from appliance.promotion.evidence import CHAMPION
from appliance.records.cycles import Checkpoint, CycleState

FIXTURE = Path(__file__).resolve().parents[3] / "fixtures" / "seedling"
RECIPE = """
[training]
tasks_per_step = 3
rollouts_per_task = 6
keep = 3
refills = 0
watch_every = 1
watch_items = 4
checkpoint_every = 1
steps = 2
[evaluation]
sealed_items = 6
unsolvable_items = 2
[[stages]]
name = "one"
kind = "rl"
[stages.agent]
max_tokens = 96
[[stages]]
name = "two"
kind = "rl"
tasks = "unsolved"
optimizer = "keep"
"""


def test_a_training_goes_on_after_its_worker_was_killed_and_is_one_at_a_time(start, data, assay, tmp_path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(RECIPE)
    daemon = start(ASSAY_MODEL__PATH=str(FIXTURE), ASSAY_SCHEDULE__ENABLED="false")
    api = daemon.ready()
    none = assay("train", "--recipe", str(recipe), "--resume")
    assert (none.returncode, "is unfinished" in none.stderr) == (4, True)

    (tmp_path / "long.toml").write_text(RECIPE + "[stages.agent]\nmax_tokens = 100000\n")
    long = assay("train", "--recipe", str(tmp_path / "long.toml"))
    assert (long.returncode, "tokens, but recipe.agent.max_tokens is 100000" in long.stderr) == (2, True)

    begun = assay("train", "--recipe", str(recipe), "--json")
    assert begun.returncode == 0, begun.stderr
    name = json.loads(begun.stdout)["id"]
    assert name.startswith("training-")
    while not api.cycle(name).steps:
        assert not api.cycle(name).cycle.state.ended, api.cycle(name).cycle.failure
        time.sleep(0.1)
    pid = api.status().worker.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)

    again = assay("train", "--recipe", str(recipe))
    assert (again.returncode, "--resume" in again.stderr) == (4, True)
    other = assay("train", "--recipe", str(recipe), "--stage", "2", "--resume")
    assert (other.returncode, "does not use this recipe" in other.stderr) == (4, True)
    resumed = assay("train", "--recipe", str(recipe), "--resume")
    assert (resumed.returncode, name in resumed.stdout) == (0, True), resumed.stderr
    while "stage_2" not in (cycle := api.cycle(name).cycle).plan:
        assert not cycle.state.ended, cycle.failure
        time.sleep(0.2)
    assert assay("cycle", "cancel", name).returncode == 0  # the evaluation is looked at elsewhere
    found = api.cycle(name)
    assert [int(step["step"]) for step in found.steps] == [0, 1, 2, 3]
    assert {made.stage for made in found.checkpoints} == {"imported", "stage", "training"}
    assert any("was killed by SIGKILL" in event.event.text for event in api.events(limit=1000))


def test_a_training_that_was_set_aside_is_found_by_its_recipe_and_goes_on(start, data, assay, tmp_path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(RECIPE)
    (other := tmp_path / "other.toml").write_text(RECIPE.replace("steps = 2", "steps = 3"))
    with_model = {"ASSAY_MODEL__PATH": str(FIXTURE), "ASSAY_SCHEDULE__ENABLED": "false"}
    daemon = start(**with_model)
    daemon.ready()
    name = json.loads(assay("train", "--recipe", str(recipe), "--json").stdout)["id"]
    daemon.end()
    with Core(Settings(data=data)) as core:
        aside = core.ledger.cycle(name).model_copy(update={"state": CycleState.SET_ASIDE})
        core.ledger.put_cycle(aside)
        named = {**aside.plan["named"], "digest": read_recipe(str(other), Settings(data=data).recipe).digest}
        core.ledger.put_cycle(aside.model_copy(update={"id": "training-other", "plan": {**aside.plan, "named": named}}))
        core.cycles.cancel(core.cycles.start("night").id)
    api = start(**with_model).ready()
    anew = assay("train", "--recipe", str(other), "--json")
    assert (anew.returncode, "`assay cycle resume training-other`" in anew.stderr) == (0, True), anew.stderr
    assert assay("cycle", "cancel", json.loads(anew.stdout)["id"]).returncode == 0
    resumed = assay("train", "--recipe", str(recipe), "--resume")
    assert (resumed.returncode, name in resumed.stdout) == (0, True), resumed.stderr
    assert api.cycle(name).cycle.state is CycleState.RUNNING
    assert assay("cycle", "cancel", name).returncode == 0
    again = assay("train", "--recipe", str(recipe), "--resume")
    assert (again.returncode, "is unfinished or set aside" in again.stderr) == (4, True)


def test_what_the_daemon_cannot_train_is_refused_before_it_is_on_record(standing) -> None:
    api = standing.ready()
    for stages, word in (
        ([{"name": "x"}], "kind"),
        ([{"name": "x", "kind": "rl", "recipe": {"training": {"steps": -1}}}], "steps"),
        ([{"name": "x", "kind": "sft", "recipe": {}, "data": "file", "file": "0" * 64}], "were not sent"),
        ([{"name": "x", "kind": "distil", "recipe": {}, "scored_by": "champion"}], "no such model: champion"),
    ):
        with pytest.raises(ApiError, match=word) as refused:
            api.start_training(StartTraining(name="r", digest="0" * 64, stages=tuple(stages)))
        assert refused.value.exit_code == 2
    assert api.cycles() == []


def test_a_model_that_reads_other_tokens_is_refused_before_a_training_begins(data, tmp_path) -> None:
    other = shutil.copytree(FIXTURE, tmp_path / "other")
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    (other / "tokenizer.json").write_text(json.dumps(tokenizer, indent=3))
    scorer = publish(other, data / "models")
    known = Checkpoint(
        manifest=scorer, parent=None, cycle="t", stage="imported", step=0, recipe="", metrics={},
        folder=f"models/{scorer}", created="2026-01-01T00:00:00+00:00",
    )  # fmt: skip
    scored = {"name": "x", "kind": "distil", "recipe": {}, "scored_by": scorer}
    wanted = StartTraining(name="r", digest="0" * 64, stages=(scored,))
    with Core(Settings(data=data, model=ModelSettings(path=FIXTURE))) as core:
        core.ledger.put_checkpoint(known)
        with pytest.raises(RequestError, match="a different tokenizer"):
            core.cycles.train(wanted)
        assert core.ledger.cycles() == []
        core.ledger.set_aliases({CHAMPION: scorer}, "a test", known.created)
        assert core.cycles.train(wanted).state is CycleState.RUNNING, "it is of the model in service"


def test_conversations_that_were_changed_on_the_disk_are_kept_anew(standing) -> None:
    api = standing.ready()
    kept = api.put_traces(b"{}\n")
    path = standing.data / "traces" / kept.sha256
    path.write_bytes(b"[]\n")
    assert api.put_traces(b"{}\n") == kept
    assert path.read_bytes() == b"{}\n"
