"""`assay curriculum` without a daemon: what a person reads of the tasksets."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from appliance.cli.main import app
from curriculum.registry import BUILT_IN, DOMAINS, TASKSETS
from curriculum.summary import about


def curriculum(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["curriculum", *arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def test_the_list_has_every_taskset_and_what_it_is_about() -> None:
    rows = json.loads(curriculum("ls", "--json"))
    assert [row["name"] for row in rows] == list(TASKSETS)
    assert all(row["checks"] and row["forms"] and row["levels"] >= 2 for row in rows)
    assert {row["domain"] for row in rows} == set(DOMAINS)


def test_the_list_can_be_narrowed_by_word_domain_and_check() -> None:
    lines = curriculum("ls", "--domain", "programs", "--check", "answer").splitlines()
    assert [line.split()[0] for line in lines] == ["taskset", "program_tracing"]
    assert "derivatives" in curriculum("ls", "tangents")
    assert "no such taskset" in curriculum("ls", "nothing-of-the-sort")


def test_every_taskset_says_what_it_asks_for() -> None:
    assert [name for name, taskset in TASKSETS.items() if len(about(taskset)) < 20] == []


def test_one_taskset_is_shown_with_a_task_of_each_level_and_without_its_answers() -> None:
    shown = curriculum("show", "knights")
    answer = BUILT_IN.draft("knights", 0, 0).answer
    assert all(f"\nlevel {level}, " in shown for level in range(TASKSETS["knights"].level_count))
    assert f"    {answer}\n" not in shown
    assert f"    {answer}\n" in curriculum("show", "knights", "--answers")
