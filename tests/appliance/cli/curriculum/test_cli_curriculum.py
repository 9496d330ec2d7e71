"""`assay curriculum` without a daemon: what a person reads of the tasksets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from printed_json import check_printed
from typer.testing import CliRunner

from appliance.cli.main import app
from appliance.client.pass_rates import block, lines_of, zone
from appliance.records.rollouts import Purpose
from appliance.records.training import PassCount
from curriculum.names import OUTSIDE, PLACES
from curriculum.registry import BUILT_IN, DOMAINS, TASKSETS, LazyDomain
from curriculum.summary import about, examples
from curriculum.tasksets.number_theory.modular_arithmetic import MODULAR_ARITHMETIC

TOY = replace(MODULAR_ARITHMETIC, name="toy")


def curriculum(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["curriculum", *arguments])
    assert result.exit_code == code, (result.output, result.exception)
    check_printed(["curriculum", *arguments], result.stdout)
    return result.output


def test_the_list_has_every_taskset_and_what_it_is_about() -> None:
    rows = json.loads(curriculum("ls", "--json"))
    assert [row["name"] for row in rows] == list(TASKSETS)
    assert all(row["checks"] and row["forms"] and row["levels"] >= 2 for row in rows)
    assert {row["domain"] for row in rows} == set(DOMAINS) - {OUTSIDE}


def test_a_taskset_that_nothing_was_written_down_of_is_listed_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLACES, "toys", {"toy": f"{__name__}:TOY"})
    monkeypatch.setitem(DOMAINS, "toys", LazyDomain(PLACES["toys"]))
    assert curriculum("ls", "--domain", "toys").splitlines()[1].split()[:2] == ["toy", "toys"]


def test_the_list_can_be_narrowed_by_word_domain_and_check() -> None:
    lines = curriculum("ls", "--domain", "programs", "--check", "answer").splitlines()
    assert [line.split()[0] for line in lines] == ["taskset", "program_tracing"]
    assert "modular_arithmetic" in curriculum("ls", "inverse")
    assert "constructions" in curriculum("ls", "polygons")
    assert "no taskset matches" in curriculum("ls", "own"), "an owner's own, and nothing unknown or known"
    for nothing in (("nothing-of-the-sort",), ("--domain", "foo"), ("--check", "foo")):
        assert "no taskset matches: list all with `assay curriculum ls`" in curriculum("ls", *nothing)


def test_every_taskset_says_what_it_asks_for() -> None:
    assert [name for name, taskset in TASKSETS.items() if len(about(taskset)) < 20] == []


def test_one_taskset_is_shown_with_a_task_of_each_level_and_without_its_answers() -> None:
    shown = curriculum("show", "knights")
    [draft] = examples(BUILT_IN, "knights", 0, 1)
    answer = draft.answer
    assert all(f"\nlevel {level}, " in shown for level in range(TASKSETS["knights"].level_count))
    assert f"    {answer}\n" not in shown
    assert f"    {answer}\n" in curriculum("show", "knights", "--answers")


def test_a_sample_is_of_seeds_that_may_be_seen_and_holds_no_answer_unasked() -> None:
    [task] = json.loads(curriculum("sample", "tables", "--level", "1", "--json"))
    assert (task["split"], task["level"], task["files"].keys()) == ("train", 1, {"orders.csv"})
    assert task.keys().isdisjoint({"spec", "answer", "key", "world"})
    [told] = json.loads(curriculum("sample", "tables", "--level", "1", "--json", "--answers"))
    assert told["answer"] == told["spec"]["expected"]
    assert f"    {told['answer']}\n" in curriculum("sample", "tables", "--level", "1", "--answers")
    sampled = json.loads(curriculum("sample", "digits", "--count", "2", "--json"))
    assert [one["seed"] for one in sampled] == [8, 16, 4, 12], "those before ask what is not training's"
    assert (
        json.loads(curriculum("sample", "digits", "--level", "0", "--seed", "5", "--json"))[0]["split"] == "validation"
    )


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        (("sample", "digits", "--seed", "6"), 4, "seed 6 is sealed"),
        (("sample", "digits", "--level", "0", "--seed", "0"), 4, "seed 0 at level 0 is sealed"),
        (("export", "terminal_repairs", "task", "--seed", "0"), 4, "seed 0 at level 0 is sealed"),
        (("sample", "digits", "--level", "2"), 2, "no level 2"),
        (("sample", "digit"), 2, "unknown taskset"),
        (("stats", "--png", "picture.jpg"), 2, ".png"),
        (("add", "--dry-run"), 2, "--repo PATH"),
        (("add", "a.jsonl", "--repo", "b"), 2, "name either a FILE or a repository"),
        (("add", "a.jsonl", "--tasks", "3"), 2, "--tasks is for a repository"),
        (("add", "--repo", "/no/such/folder", "--dry-run"), 2, "a git repository or a source distribution"),
        (("stats", "--png", "/no/such/folder/a.png"), 2, "no such folder"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_what_to_do(asked: tuple[str, ...], code: int, said: str) -> None:
    refused = CliRunner().invoke(app, ["curriculum", *asked])
    error = refused.exception
    assert (getattr(error, "exit_code", None), said in str(error) or said in error.hint) == (code, True)


def counted(cycle: str, level: int | None, passed: int, rollouts: int = 10, family: str = "digits") -> PassCount:
    return PassCount(
        cycle=cycle, purpose=Purpose.TRAIN, family=family, level=level, rollouts=rollouts, passed=passed, broken=0
    )


def test_rates_are_by_taskset_and_level_and_a_night_without_rollouts_has_none() -> None:
    counts = [counted("b", 1, 9), counted("a", 0, 0), counted("a", 1, 5), counted("a", 2, 0, rollouts=0)]
    easy, hard = lines_of(counts)[::-1]
    assert [(line.name, line.rate("a"), line.rate("b")) for line in (hard, easy)] == [
        ("digits 0", 0.0, None),
        ("digits 1", 0.5, 0.9),
    ]
    assert [block(rate) for rate in (None, 0.0, 0.5, 1.0)] == ["·", "▁", "▅", "█"]
    assert [zone(rate) for rate in (0.1, 0.2, 0.8, 0.9)] == ["hard", "", "", "easy"]


def test_what_the_sampler_thinks_of_a_level_is_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    from appliance.cli.curriculum.stats import _show

    told = {"state": "too hard"}
    counts = [counted("a", 0, 5), counted("a", 1, 0).model_copy(update=told), counted("b", 1, 1)]
    _show(["a", "b"], lines_of(counts))
    shown = capsys.readouterr().out
    assert [line.split()[-3:] for line in shown.splitlines()[:3]] == [
        ["rollouts", "sampler", "rate"],
        ["50.0", "%", "10"],
        ["too", "hard", "hard"],
    ]
    assert "recipe.training.difficulty" in shown


def test_rates_are_drawn_with_their_figures(tmp_path: Path) -> None:
    from PIL import Image

    from appliance.cli.curriculum.stats import draw, shade

    lines = lines_of([counted("a", 0, 0), counted("b", 0, 10), counted("b", 1, 5, family="x\x1b[2J" * 30)])
    draw(tmp_path / "a.png", ["a", "b"], lines)
    picture = Image.open(tmp_path / "a.png")
    colours = {colour for _, colour in picture.getcolors(1 << 20)}
    assert {shade(0.0), shade(1.0), shade(0.5)} <= colours
    assert picture.width < 1_000


def refusal(*arguments: str) -> tuple[int, str]:
    error = CliRunner().invoke(app, ["curriculum", *arguments]).exception
    return int(getattr(error, "exit_code", 0)), str(error)


def test_a_task_of_the_terminal_goes_out_as_a_harbor_folder_and_is_read_back(tmp_path: Path) -> None:
    folder, other = str(tmp_path / "one"), str(tmp_path / "two")
    curriculum("export", "terminal_repairs", folder, "--level", "1", "--seed", "4")
    assert "a verdict of the check" in curriculum("harbor", folder)
    assert refusal("export", "terminal_repairs", folder) == (2, f"{folder} exists already")
    assert refusal("export", "terminal_repairs", other, "--seed", "2")[0] == 4
    assert "only terminal tasks" in refusal("export", "divisibility", other)[1]
    (tmp_path / "one/tests/assay.json").unlink()
    assert "a foreign reward, not a verdict" in curriculum("harbor", folder)
    (tmp_path / "one/environment/Dockerfile").write_text("FROM debian\nRUN apt-get install -y make\nWORKDIR /work\n")
    assert "installed when it is added: make" in curriculum("harbor", folder)
    (tmp_path / "one/task.toml").write_text("[environment]\nallow_internet = true\n")
    assert "needs a network" in refusal("harbor", folder)[1]
    assert "nothing can be fetched" in curriculum("harbor", folder, "--without-network")
