"""`assay curriculum measure`, and what `ls --for` makes of it: a real engine, sandboxes and verifiers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from sandbox_commands import in_process

from appliance.evaluation.measured import MEASURED, folder_of, name_key
from appliance.evaluation.plan import ATTEMPTS, AttemptFile, EvaluationAttempt, EvaluationPlan
from curriculum.registry import TASKSETS

SEEDLING = Path(__file__).parents[3] / "fixtures" / "seedling"
MEASURE = ("curriculum", "measure", "--model", str(SEEDLING), "--taskset", "powers", "--items", "1", "--repeats", "1")


@pytest.fixture
def data(served: Path):
    yield served
    shutil.rmtree(served / MEASURED, ignore_errors=True)


def assay(data: Path, *arguments: str):
    return in_process(["--data", str(data), *arguments])


def test_a_model_is_measured_by_topic_and_level_and_a_second_run_asks_nothing_again(data: Path) -> None:
    places = TASKSETS["powers"].level_count * len(TASKSETS["powers"].topics)
    found = assay(data, *MEASURE, "--json")
    assert found.returncode == 0, found.stderr
    measured = json.loads(found.stdout)
    assert {row["name"].rpartition("/")[0] for row in measured["topics"]} == {"powers/0", "powers/1", "powers/2"}
    assert (measured["all"]["right"] + measured["all"]["wrong"], measured["complete"]) == (places, True)
    [attempts] = (data / MEASURED).glob(f"*/*/{ATTEMPTS}")
    before = attempts.read_bytes()
    again = assay(data, *MEASURE)
    assert (again.returncode, attempts.read_bytes()) == (0, before)
    assert "powers/2/" in again.stdout
    assert f"assay curriculum ls --for {SEEDLING}" in again.stdout
    listed = json.loads(assay(data, "curriculum", "ls", "power", "--for", str(SEEDLING), "--json").stdout)
    assert next(one for one in listed if one["name"] == "powers")["attempts"] == places
    card = json.loads(assay(data, "curriculum", "show", "powers", "--json").stdout)
    assert [(one["level"], one["judged"]) for one in card["measured"]] == [(0, 1), (1, 1), (2, 1)]
    assert {one["one_line"] for one in card["card"]} == {1.0}


def test_tasksets_are_listed_by_what_the_model_can_learn_from(data: Path) -> None:
    versions = {name: TASKSETS[name].version for name in ("powers", "digits", "linear")}
    plan = EvaluationPlan(
        model="theirs", engine="http://127.0.0.1:1/v1", items=1, each_topic=True, seeds=(0,), repeats=40,
        tasksets=tuple(f"{name}@{version}" for name, version in versions.items()),
        temperature=1.0, max_tokens=100, max_calls=4, max_result_chars=28, assay="0",
    )  # fmt: skip
    right = {"powers": 40, "digits": 20, "linear": 0}
    with AttemptFile(folder_of(data, name_key("theirs"), plan), plan, resume=True) as file:
        file.add(
            EvaluationAttempt(
                question=name, taskset=name, level=0, topic=TASKSETS[name].topics[0], seed=0, repeat=repeat,
                outcome="right" if repeat < passed else "wrong", ended="answered", tokens=1, calls=1, failed_calls=0,
                seconds=1.0,
            )
            for name, passed in right.items()
            for repeat in range(40)
        )  # fmt: skip
    listed = json.loads(assay(data, "curriculum", "ls", "--for", "theirs", "--json").stdout)
    assert listed[0]["name"] == "digits"
    assert {one["name"]: one["passes"] for one in listed[:3]} == {"digits": 0.5, "linear": 0.0, "powers": 1.0}
    assert listed[0]["learnable"] > 0.9 > 0.1 > listed[1]["learnable"]
    assert all(one["learnable"] is None for one in listed[3:])
    shown = assay(data, "curriculum", "show", "digits").stdout
    [heading] = [line for line in shown.splitlines() if line.startswith("level and topic")]
    assert heading.split()[-1] == "theirs"
    assert next(line for line in shown.splitlines() if line.startswith("0/digit_sum")).split()[-1] == "20/40"
    assert next(line for line in shown.splitlines() if line.startswith("0/octal")).split()[-1] == "-"
    lines = assay(data, "curriculum", "ls", "--for", "theirs").stdout.splitlines()
    assert lines[1].split()[:4] == ["digits", "100", "%", "50"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("curriculum", "ls", "--for", str(SEEDLING)), "nothing was measured of"),
        (("curriculum", "ls", "--for", "nobody"), "unknown model nobody"),
        (("curriculum", "ls", "--for", str(Path(__file__).parent)), "has no .safetensors file"),
        (("curriculum", "measure", "--model", "nobody"), "unknown model nobody"),
        (("curriculum", "measure", "--taskset", "nothing"), "unknown taskset"),
    ],
)
def test_what_cannot_be_listed_or_measured_ends_with_2_and_says_what_to_do(
    data: Path, arguments: tuple[str, ...], said: str
) -> None:
    found = assay(data, *arguments)
    assert (found.returncode, said in found.stderr) == (2, True), found.stderr
