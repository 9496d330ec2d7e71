"""A Harbor task folder as a problem of the owner's: its check, what its solution leaves, and why another is none."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.cli.check.own_rows import LENIENT, checked
from curriculum.certification.certificate import Certificate
from curriculum.certification.certify import ONLY_FOREIGN, certify
from curriculum.contract.task import asked
from curriculum.environments.terminal.harbor.export import write
from curriculum.names import OWN
from curriculum.own.columns import RowError
from curriculum.own.harbor import folders_in, not_sealed, refusal, row_of_folder, solved, untouched
from curriculum.own.rows import LEVELS, OwnRow, with_levels
from curriculum.own.taskset import OwnContent, OwnTaskset
from curriculum.registry import BUILT_IN, make_draft
from curriculum.sealed import sealed_set
from curriculum.summary import summary_of
from runtime.sandbox import SessionPool
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.checker import Checker
from verifiers.files.spec import FileCondition, FilesSpec


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, full_roots: Path) -> RuntimeSettings:
    return RuntimeSettings(own=BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=full_roots, ready=1))


@pytest.fixture(scope="module")
def pool(settings: RuntimeSettings) -> Iterator[SessionPool]:
    with Sessions(settings) as pool:
        yield pool


def repair(folder: Path, seed: int = 4) -> Path:
    write(make_draft("terminal_repairs", 1, seed), f"repair-{seed}", folder)
    return folder


def of_rows(*rows: OwnRow) -> OwnTaskset:
    content = OwnContent(name="repairs", licence="CC0", source="ours", added="", rows=with_levels(rows))
    return OwnTaskset(content.model_copy(update={"digest": content.rows_digest()}))


def certified(*rows: OwnRow, checker: Checker | None = None) -> Certificate:
    def judge(pairs: object) -> object:
        assert checker is not None, "nothing of ours decides"
        return checker.check_many(pairs)  # type: ignore[arg-type]

    catalog = BUILT_IN.with_domain(OWN, [of_rows(*rows)])
    return certify(catalog, "own/repairs", judge, seeds=2)  # type: ignore[arg-type]


def test_a_folder_is_one_task_or_holds_tasks_and_nothing_else_is_taken_for_one(tmp_path: Path) -> None:
    one = repair(tmp_path / "all" / "one")
    (tmp_path / "all" / "notes").mkdir()
    (tmp_path / "all" / ".git").mkdir()
    (tmp_path / "all" / "registry.json").write_text("[]")
    assert folders_in(one) == [one]
    assert [path.name for path in folders_in(tmp_path / "all")] == ["notes", "one"]
    assert folders_in(tmp_path / "all" / "notes") == []
    assert folders_in(tmp_path / "all" / "registry.json") == []


def test_a_repair_comes_back_as_a_row_whose_solution_is_its_answer(
    tmp_path: Path, pool: SessionPool, settings: RuntimeSettings
) -> None:
    draft = make_draft("terminal_repairs", 1, 4)
    read = row_of_folder(repair(tmp_path / "one"))
    assert (read.row.environment, read.row.tools, read.row.origin) == ("terminal", ("run_command",), "one")
    assert (read.row.spec, read.row.answer) == (draft.spec, "")
    row = solved(pool, read)
    with Checker(settings) as checker:
        [(_, reason)] = checked(checker, iter([row]), lambda done: None)
        assert reason == ""
        [(_, reason)] = checked(checker, iter([met_by_nothing_done(row)]), lambda done: None)
        assert reason == LENIENT
        few = [row.model_copy(update={"question": f"{row.question} {at}"}) for at in range(4)]
        found = certified(*few, checker=checker)
    assert found.holds, found.faults
    assert found.agents["reference"].rate == 1.0


def met_by_nothing_done(row: OwnRow) -> OwnRow:
    placed = {one["path"]: one["text"] for one in row.world["files"]}
    path = next(name for name in row.world["declared"] if name in placed)
    spec = FilesSpec(declared=(path,), files=(FileCondition(path=path, equals=placed[path]),))
    return row.model_copy(update={"spec": spec, "answer": "", "world": {**row.world, "declared": [path]}})


def test_a_row_that_only_its_own_test_scores_has_no_answer_and_is_never_certified(tmp_path: Path) -> None:
    (repair(tmp_path / "one") / "tests/assay.json").unlink()
    read = row_of_folder(tmp_path / "one")
    assert read.row.answer == ""
    rows = [read.row.model_copy(update={"question": f"{read.row.question} {at}"}) for at in range(20)]
    found = certified(*rows)
    assert ONLY_FOREIGN in found.faults
    assert not found.agents
    assert summary_of(BUILT_IN.with_domain(OWN, [of_rows(*rows)]), "own/repairs").foreign
    assert not summary_of(BUILT_IN, "terminal_repairs").foreign


@pytest.mark.parametrize(
    ("script", "why"),
    [("exit 3\n", "exit code 3"), ("kill -9 -1\n", "does not complete"), ("echo why; exit 1", "why .exit code 1")],
)
def test_a_solution_that_does_not_run_is_told(tmp_path: Path, pool: SessionPool, script: str, why: str) -> None:
    read = row_of_folder(repair(tmp_path / "one"))
    with pytest.raises(RowError, match=why):
        solved(pool, read._replace(solution=(read.solution[0].model_copy(update={"text": script}),)))


FOREIGN = {
    "task.toml": '[environment]\nallow_internet = true\n[environment.healthcheck]\ncommand = "test -s /data/made"\n',
    "instruction.md": "Write the sum of /data/made into /app/out/sum.txt.\n",
    "environment/Dockerfile": "FROM ubuntu:22.04\nRUN mkdir -p /app/out\nWORKDIR /app\nCOPY numbers /data/\n"
    "RUN sort -n /data/numbers > /data/made && rm /data/numbers\n",
    "environment/numbers": "3\n1\n2\n",
    "tests/test.sh": "cd /app; mkdir -p /logs/verifier\n"
    'if [ "$(cat out/sum.txt)" = 6 ] && [ ! -e /data/numbers ]; then echo 1; else echo 0; fi'
    " > /logs/verifier/reward.txt; cat out/sum.txt\n",
    "solution/solve.sh": "#!/bin/bash\npython3 /solution/add.py\n",
    "solution/add.py": "open('/app/out/sum.txt', 'w').write(str(sum(map(int, open('/data/made')))))\n",
}  # fmt: skip


def peers(folder: Path, **texts: str) -> Path:
    """A folder as others write them: it installs, copies and runs something, and asks for a network."""
    for name, text in (FOREIGN | texts).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_folder_of_others_is_prepared_and_its_solution_shows_that_it_can_be_solved(
    tmp_path: Path, pool: SessionPool
) -> None:
    with pytest.raises(RowError, match="--without-network"):
        row_of_folder(peers(tmp_path / "one"))
    row = solved(pool, row_of_folder(tmp_path / "one", without_network=True))
    assert [(one["path"], one["text"]) for one in row.world["files"]] == [("harbor/data/made", "1\n2\n3\n")]
    assert row.world["folders"] == ["harbor/data", "out"]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("solution/add.py", "open('/app/out/sum.txt', 'w').write('7')\n", "a score of 0 here.*its test: 7"),
        ("solution/add.py", "raise SystemExit('no way')\n", "does not complete: no way .exit code 1"),
        ("environment/Dockerfile", "FROM ubuntu\nWORKDIR /app\nRUN mkdir -p /data\n", "its health check fails"),
    ],
)
def test_a_folder_whose_solution_fails_is_refused_with_its_output(
    tmp_path: Path, pool: SessionPool, name: str, text: str, why: str
) -> None:
    folder = peers(tmp_path / "one", **{name: text})
    with pytest.raises(RowError, match=why):
        solved(pool, row_of_folder(folder, without_network=True))


def test_a_folder_that_cannot_be_reproduced_needs_a_solution_that_does_without(
    tmp_path: Path, pool: SessionPool
) -> None:
    lossy = FOREIGN["environment/Dockerfile"] + "RUN curl -O https://x/y\nRUN exit 3\n"
    folder = peers(tmp_path / "one", **{"environment/Dockerfile": lossy})
    assert solved(pool, row_of_folder(folder, without_network=True)).world["files"]
    (folder / "solution/solve.sh").unlink()
    with pytest.raises(RowError, match=r"no solution that would show .* RUN curl"):
        row_of_folder(folder, without_network=True)
    (folder / "environment/Dockerfile").write_text(FOREIGN["environment/Dockerfile"] + "RUN echo away; exit 3\n")
    with pytest.raises(RowError, match=r"no solution that would show .*exit code 3"):
        solved(pool, row_of_folder(folder, without_network=True))


def test_what_an_image_installs_is_in_the_terminal_and_beside_the_test(
    tmp_path: Path, full_roots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = tmp_path / "sets"
    monkeypatch.setattr("runtime.package_sets.sets_folder", lambda: sets)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    about = "toy-1.0.dist-info"
    with zipfile.ZipFile(tmp_path / "toy-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("toy.py", "def main():\n    print(6)\n")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/entry_points.txt", "[console_scripts]\ntoy = toy:main\n")
        wheel.writestr(f"{about}/RECORD", "")
    image = "FROM python:3.12-slim\nRUN apt-get update && pip install toy==1.0 nowhere\nWORKDIR /app\n"
    test = 'pip install pytest; [ "$(toy)$(cat /app/sum.txt)" = 66 ] && echo 1 > /logs/verifier/reward.txt\n'
    folder = peers(
        tmp_path / "one",
        **{
            "task.toml": "",
            "environment/Dockerfile": image,
            "tests/test.sh": test,
            "solution/solve.sh": "pip install x && python -m toy; toy > /app/sum.txt\n",
        },
    )
    own = BrokerSettings(state_dir=tmp_path / "state", root_dir=full_roots, ready=1, package_sets=sets)
    with Sessions(RuntimeSettings(own=own)) as pool:
        row = solved(pool, row_of_folder(folder))
    assert row.environment == "container"
    assert of_rows(row).missing() == ""
    assert of_rows(row).packages == [row.world["packages"]]
    monkeypatch.setenv("PIP_FIND_LINKS", os.devnull)  # a second time nothing is asked for
    with Sessions(RuntimeSettings(own=own)) as pool:
        assert solved(pool, row_of_folder(folder)).world["packages"] == row.world["packages"]
    shutil.rmtree(sets)
    assert "add its folders again" in of_rows(row).missing()


def test_what_is_no_task_here_says_why(tmp_path: Path) -> None:
    one = repair(tmp_path / "one")
    (tmp_path / "link").symlink_to(one)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RowError, match="link"):
        row_of_folder(tmp_path / "link")
    with pytest.raises(RowError, match=r"no task\.toml"):
        row_of_folder(tmp_path / "empty")
    (one / "instruction.md").write_text("long " * 9_000)
    with pytest.raises(RowError, match="cannot be a task"):
        row_of_folder(one)


def test_a_sealed_question_comes_in_neither_as_an_instruction_nor_in_a_file(tmp_path: Path) -> None:
    sealed = sealed_set(2, 3, tasksets=("tables", "calendars")).tasks
    door = not_sealed(sealed)
    one = repair(tmp_path / "one")
    assert refusal(row_of_folder(one).row, [door]) == ""
    written = row_of_folder(one).row
    planted = {"path": "notes.txt", "text": f"to do:\n{sealed[0].question}\n", "mode": "644"}
    hidden = written.model_copy(update={"world": {**written.world, "files": [*written.world["files"], planted]}})
    assert "files contains a sealed question" in refusal(hidden, [door])
    (one / "instruction.md").write_text(sealed[1].question)
    assert "sealed" in refusal(row_of_folder(one).row, [door])


def test_nothing_done_is_what_lies_there_at_first(tmp_path: Path) -> None:
    row = row_of_folder(repair(tmp_path / "one")).row
    assert untouched(row).startswith("{")
    bare = row.model_copy(update={"world": {"files": [], "declared": ["a"]}})
    assert untouched(bare) == "{}"


def test_a_terminal_s_rows_are_asked_as_tasks_of_the_terminal(tmp_path: Path) -> None:
    row = row_of_folder(repair(tmp_path / "one")).row
    taskset = of_rows(row)
    task = next(draft for level in range(LEVELS) for draft in taskset._rows.get((row.split, level), []))
    assert taskset._draft(task).messages == asked(row.question)
    assert taskset.missing() == ""
