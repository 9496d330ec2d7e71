"""The owner's problems, from a file to a taskset and out again, with a real daemon."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from appliance.client import ApiError
from appliance.config.configuration import Settings
from appliance.curriculum.own_files import file_of
from appliance.curriculum.own_tasksets import catalog_in
from appliance.daemon.contract import RefusedByPolicyError, RequestError
from appliance.daemon.coordination.core import Core
from curriculum.environments.terminal.harbor.export import write
from curriculum.own.rows import OwnRow, with_levels
from curriculum.own.taskset import OwnContent
from curriculum.registry import make_draft
from verifiers.answers.spec import AnswerSpec

ROWS = [{"question": f"What is {at} plus {at}?", "answer": f"It is #### {2 * at}"} for at in range(12)]
REFUSED = [
    {"question": "  WHAT is 3 plus 3?", "answer": "6"},
    {"question": "nothing to check with"},
    {
        "question": "Add.",
        "code": "def add(a, b):\n    return a - b",
        "tests": ["assert add(1, 2) == 3", "assert add(1, 4) == 5"],
    },
    {"question": "Twice.", "code": "def f(x):\n    return 3 * x", "tests": ["assert f(2) == 4", "assert f(1) == 2"]},
]


def content(name: str = "sums") -> OwnContent:
    rows = [OwnRow(question=f"{at}?", spec=AnswerSpec(expected="1"), answer="1", origin="f:1") for at in range(3)]
    return OwnContent(name=name, added="", rows=with_levels(rows))


def test_problems_are_checked_added_shown_and_removed(standing, ask, tmp_path: Path) -> None:
    standing.ready()
    program = {
        "question": "Twice.",
        "code": "def f(x):\n    return 2 * x",
        "tests": ["assert f(2) == 4", "assert f(0) == 0"],
    }
    lines = [*map(json.dumps, [*ROWS, *REFUSED, program]), "no json"]
    (tmp_path / "sums.jsonl").write_text("\n".join(lines))
    added = ask("curriculum", "add", str(tmp_path / "sums.jsonl"), "--licence", "CC0", "--json")
    assert added.returncode == 0, added.stderr
    found = json.loads(added.stdout)
    assert (found["name"], found["kept"], found["kinds"]) == ("own/sums", True, {"answer": 12, "program": 1})
    reasons = {one["origin"]: one["reason"] for one in found["refused"]}
    assert reasons.keys() == {f"sums.jsonl:{number}" for number in (13, 14, 15, 16, 18)}
    assert "exists already" in reasons["sums.jsonl:13"]
    assert "its check rejects its own answer" in reasons["sums.jsonl:15"]
    assert "its check rejects its own answer" in reasons["sums.jsonl:16"], (
        "and the right row with its question is taken"
    )
    shown = ask("curriculum", "show", "own/sums")
    assert "CC0" in shown.stdout
    (row,) = json.loads(ask("curriculum", "ls", "--domain", "own", "--json").stdout)
    assert (row["name"], row["levels"], row["missing"]) == ("own/sums", 5, "")
    assert "What is" in ask("curriculum", "sample", "own/sums", "--count", "3").stdout
    same_name = ask("curriculum", "add", str(tmp_path / "sums.jsonl"))
    assert (same_name.returncode, "own/sums already exists" in same_name.stderr) == (2, True), same_name.stderr
    again = ask("curriculum", "add", str(tmp_path / "sums.jsonl"), "--name", "others")
    assert (again.returncode, "accepted  0 of 18 rows" in again.stdout) == (1, True)
    assert "taskset.added" in ask("audit", "ls").stdout
    certified = ask("curriculum", "certify", "own/sums")
    assert (certified.returncode, "13 of 13 rows, each once" in certified.stdout) == (0, True), certified.stdout
    more = tmp_path / "more.jsonl"
    more.write_text(json.dumps({"question": "How many legs have three spiders?", "answer": "24"}))
    assert '"linear", "own/sums", "own/more"]' in ask("curriculum", "add", str(more)).stdout
    removed = ask("curriculum", "rm", "own/sums")
    assert (removed.returncode, ask("curriculum", "rm", "own/sums").returncode) == (0, 2)


def test_a_dry_run_keeps_nothing_and_takes_tables_too(standing, ask, tmp_path: Path) -> None:
    standing.ready()
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["Question", "Final_Answer"], ["2+2 is?", "4"], ["1+1 is?", "2", "more"]])
    tried = ask("curriculum", "add", str(tmp_path), "--name", "tried", "--dry-run", "--json")
    found = json.loads(tried.stdout)
    assert (found["accepted"], found["kept"], len(found["refused"])) == (1, False, 1)
    assert "no taskset matches" in ask("curriculum", "ls", "tried").stdout


def harbor_folders(place: Path) -> None:
    """Two repairs with our check, one of them with a solution that does not solve it; one with its own test alone; one
    that wants a network; and something else."""
    for at, seed in enumerate((3, 5, 8)):
        write(make_draft("terminal_repairs", 0, seed), f"repair-{at}", place / f"repair-{at}")
    (place / "repair-1/solution/solve.sh").write_text("#!/bin/bash\necho 1 > elsewhere\n")
    (place / "repair-2/tests/assay.json").unlink()
    shutil.rmtree(place / "repair-2/solution")  # which its test, without our check, would not accept
    write(make_draft("terminal_repairs", 0, 9), "net", place / "wants-a-network")
    (place / "wants-a-network/task.toml").write_text("[environment]\nallow_internet = true\n")
    (place / "notes").mkdir()


def test_harbor_folders_are_added_with_what_their_solutions_leave(
    full_roots: Path, start, assay, tmp_path: Path
) -> None:
    start(broker=True).ready()
    harbor_folders(tmp_path / "tasks")
    ran = assay("curriculum", "add", str(tmp_path / "tasks"), "--name", "repairs", "--license", "MIT", "--json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert (found["name"], found["accepted"], found["kinds"]) == ("own/repairs", 1, {"files": 1})
    reasons = {one["origin"]: one["reason"] for one in found["refused"]}
    assert reasons.keys() == {"notes", "repair-1", "repair-2", "wants-a-network"}
    assert "task.toml" in reasons["notes"]
    assert "its check rejects its own answer" in reasons["repair-1"]
    assert "never trained on" in reasons["repair-2"]
    assert "--without-network" in reasons["wants-a-network"]
    shown = assay("curriculum", "show", "own/repairs").stdout
    assert ("MIT" in shown, "terminal" in shown, "trained on" in shown) == (True, True, False)
    alone = assay("curriculum", "add", str(tmp_path / "tasks/repair-2"), "--name", "scored")
    assert "scored by a foreign reward" in alone.stdout, alone.stderr
    assert "never: its answers are scored" in assay("curriculum", "show", "own/scored").stdout
    listed = assay("curriculum", "ls", "--domain", "own").stdout
    assert "never trained on (foreign reward): own/scored" in listed
    assert assay("curriculum", "certify", "own/scored", "--seeds", "1").returncode == 1
    kind = assay("curriculum", "add", str(tmp_path / "tasks"), "--kind", "answer")
    assert (kind.returncode, "omit --kind" in kind.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "/etc/hostname"), "ends with"),
        (("add", "/no/such.jsonl"), "no such file or folder"),
        (("add", "{folder}"), "no file of problems"),
        (("add", "{folder}", "--kind", "magic"), "unknown kind"),
        (("add", "{folder}", "--name", "A B"), "invalid taskset name"),
        (("rm", "own/../../etc"), "invalid taskset name"),
        (("rm", "own/nothing"), "no such taskset"),
    ],
)
def test_what_cannot_be_added_or_removed_says_what_to_do(
    standing, ask, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    standing.ready()
    refused = ask("curriculum", *(one.format(folder=tmp_path) for one in arguments))
    assert (refused.returncode, said in refused.stderr, "Traceback" in refused.stderr) == (2, True, False)


def test_nothing_is_replaced_and_nothing_is_removed_while_a_cycle_uses_it(data: Path) -> None:
    with Core(Settings(data=data)) as core:
        added = core.own_work.add(content())
        assert catalog_in(data, ["own/sums"]).named("own/sums").version == int(added.digest[:8], 16)
        with pytest.raises(RequestError, match="already exists"):
            core.own_work.add(content())
        with pytest.raises(RequestError, match="built-in"):
            core.own_work.add(content("digits"))
        recipe = core.settings.recipe.model_copy(update={"tasksets": ("digits", "own/sums")})
        cycle = core.cycles._begin("night", 0, {"recipe": recipe.model_dump(mode="json")})
        with pytest.raises(RefusedByPolicyError, match="uses own/sums"):
            core.own_work.remove("own/sums")
        core.cycles.cancel(cycle.id)
        core.own_work.remove("own/sums")
        assert not file_of(data, "sums").exists()


def test_pass_rates_are_asked_of_the_daemon(standing, ask) -> None:
    api = standing.ready()
    empty = ask("curriculum", "stats")
    assert (empty.returncode, "assay cycle start" in empty.stdout) == (0, True)
    with pytest.raises(ApiError, match="no such cycle"):
        api.pass_counts("night-x")
