"""`assay curriculum try`: a person's answer, a sandbox, a world's tools, and the verdict."""

from __future__ import annotations

from pathlib import Path

import pytest
from sandbox_commands import in_process

from appliance.cli.curriculum.try_item import arguments_of
from curriculum.contract.task import Split
from curriculum.registry import BUILT_IN
from curriculum.seeds import seeds
from curriculum.summary import training_drafts
from runtime.errors import BadRequestError


def tried(data: Path, *arguments: str, typed: str = ""):
    return in_process(["--data", str(data), "curriculum", "try", *arguments], typed)


def shown_seed(name: str, level: int) -> tuple[str, str]:
    """A seed whose question people may see, and its answer."""
    [(seed, draft)] = training_drafts(BUILT_IN, name, level, 1, seeds(Split.TRAIN))
    return str(seed), draft.answer


def test_python_runs_beside_the_files_and_the_verdict_comes_with_its_evidence(served: Path) -> None:
    seed, answer = shown_seed("tables", 1)
    orders = BUILT_IN.draft("tables", 1, int(seed)).files["orders.csv"]
    script = f'print(len(open("orders.csv").read()))\n:show nothing.csv\n:answer\n:answer 5\n:answer {answer}\n1\n'
    shown = tried(served, "tables", "--level", "1", "--seed", seed, typed=script)
    assert shown.returncode == 0, shown.stderr
    assert f"orders.csv, {len(orders.splitlines())} lines" in shown.stdout
    first, passed = shown.stdout.index("fail (refuted)"), shown.stdout.index("pass (proved)")
    assert shown.stdout.index(f"\n{len(orders)}\n") < first < passed
    assert '"read": "5"' in shown.stdout[first:passed]
    assert "has no file 'nothing.csv'" in shown.stderr
    assert "the answer is empty" in shown.stderr


def test_the_tools_of_a_world_are_called_by_name_and_the_world_gives_the_answer(served: Path) -> None:
    script = ":tools\n:tool look\n:tool act action=1\n:tool fly\n:tool act {\n1 + 1\n:answer 5\n:done\n"
    shown = tried(served, "hidden_rules", "--seed", shown_seed("hidden_rules", 0)[0], typed=script)
    assert (shown.returncode, "fail (unfinished)" in shown.stdout) == (1, True)
    assert "level 1 of 3" in shown.stdout
    assert "refused: act has no argument `action`" in shown.stdout
    for said in ("unknown tool 'fly'", "invalid JSON", "no Python", "the answer is the state of the world"):
        assert said in shown.stderr, said


def test_an_answer_may_be_given_at_once_and_leaving_is_no_pass(served: Path, tmp_path: Path) -> None:
    seed, answer = shown_seed("knights", 0)
    (tmp_path / "answer.txt").write_text(f"\\boxed{{{answer}}}\n")
    assert tried(served, "knights", "--seed", seed, "--answer", answer).returncode == 0
    assert tried(served, "knights", "--seed", seed, "--file", str(tmp_path / "answer.txt")).returncode == 0
    seed, _ = shown_seed("program_tracing", 0)
    left = tried(served, "program_tracing", "--seed", seed, typed=":help\n:quit\n")
    assert (left.returncode, f"--level 0 --seed {seed}" in left.stdout) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("knights", "--seed", "2"), 4, "seed 2 is sealed"),
        (("knights", "--seed", "8"), 4, "seed 8 at level 0 is sealed"),
        (("knights", "--level", "7"), 2, "no level 7"),
        (("knight",), 2, "unknown taskset"),
        (("knights", "--answer", "T", "--file", "x"), 2, "give one of them"),
        (("hidden_rules", "--answer", "T"), 2, "the state of its world"),
    ],
)
def test_what_cannot_be_tried_says_what_to_do(served: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    refused = tried(served, *arguments)
    assert (refused.returncode, said in refused.stderr) == (code, True), refused.stderr


def test_arguments_of_a_tool_are_json_or_names_with_values() -> None:
    assert arguments_of("""query="an invoice" limit=3 exact=true""") == {
        "query": "an invoice",
        "limit": 3,
        "exact": True,
    }
    assert arguments_of('{"a": [1, 2]}') == {"a": [1, 2]}
    assert arguments_of("") == {}
    for wrong in ("{", "query", "=1", 'a="'):
        with pytest.raises(BadRequestError):
            arguments_of(wrong)
