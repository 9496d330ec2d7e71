"""A whole evaluation of inspect_ai whose sample has an Assay sandbox: found by its entry point, told by the policy."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import guest_roots as building
import inspect_ai
import pytest
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import TaskState, generate, use_tools
from inspect_ai.tool import bash, python
from inspect_ai.util import sandbox

from appliance.interop import inspect_ai as provider


@pytest.fixture
def data(tmp_path: Path, full_roots: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder of its own, as somebody has who has just installed Assay."""
    for name, folder in {"XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "share", "INSPECT_LOG_DIR": "logs"}.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    building.lend(full_roots, tmp_path / "data" / "run")
    yield tmp_path / "data"
    assert provider.POOL.opened is None


@scorer(metrics=[accuracy()])
def what_is_in_the_sandbox() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        ran = await sandbox().exec(["sh", "-c", "cat answer && cat given/file"])
        return Score(value=ran.stdout == target.text, answer=ran.stdout)

    return score


def evaluated(tmp_path: Path, *calls: tuple[str, dict[str, str]]) -> EvalLog:
    """One sample whose model calls these tools, one after another."""
    said = [ModelOutput.for_tool_call("mockllm/model", name, arguments) for name, arguments in calls]
    said.append(ModelOutput.from_content("mockllm/model", "done"))
    for output in said:  # who says nothing of tokens has them counted by what is fetched over the network
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    model = get_model("mockllm/model", custom_outputs=said)
    sample = Sample(
        "What is 6 * 7?", target="42\ngiven", files={"given/file": "given"}, setup="#!/bin/sh\necho ready > begun\n"
    )
    task = inspect_ai.Task([sample], solver=[use_tools(bash(), python()), generate()], scorer=what_is_in_the_sandbox())
    [log] = inspect_ai.eval(task, model=model, sandbox="assay", log_dir=str(tmp_path / "logs"), display="none")
    return log


def test_inspect_ai_finds_the_provider_by_its_entry_point() -> None:
    assert {point.name: point.value for point in entry_points(group="inspect_ai")} == {
        "assay": "appliance.interop.inspect_ai"
    }


@pytest.mark.usefixtures("data")
def test_a_model_works_in_the_sandbox_and_its_scorer_looks_at_what_is_left(tmp_path: Path) -> None:
    log = evaluated(
        tmp_path,
        ("bash", {"command": "cat begun; ls given"}),
        ("python", {"code": "open('answer', 'w').write(f'{6 * 7}\\n')\nprint('written')"}),
    )
    assert log.status == "success", log.error
    assert log.samples is not None
    [sample] = log.samples
    assert [message.text for message in sample.messages if message.role == "tool"] == ["ready\nfile\n", "written\n"]
    assert log.results is not None
    assert log.results.scores[0].metrics["accuracy"].value == 1
