"""A Harbor task folder as a problem of the owner's: its check, what its solution leaves, and why another is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.cli.check.own_rows import LENIENT, checked
from curriculum.certification.certificate import Certificate
from curriculum.certification.certify import ONLY_FOREIGN, certify
from curriculum.contract.task import asked
from curriculum.environments.terminal.harbor.folder import write
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
    assert (read.solution, read.row.answer) == ("", "")
    rows = [read.row.model_copy(update={"question": f"{read.row.question} {at}"}) for at in range(20)]
    found = certified(*rows)
    assert ONLY_FOREIGN in found.faults
    assert not found.agents
    assert summary_of(BUILT_IN.with_domain(OWN, [of_rows(*rows)]), "own/repairs").foreign
    assert not summary_of(BUILT_IN, "terminal_repairs").foreign


@pytest.mark.parametrize(
    ("script", "why"),
    [("exit 3\n", "exit code 3"), ("kill -9 -1\n", "does not complete"), ("x" * 100_001, "cannot run here")],
)
def test_a_solution_that_does_not_run_is_told(tmp_path: Path, pool: SessionPool, script: str, why: str) -> None:
    read = row_of_folder(repair(tmp_path / "one"))
    with pytest.raises(RowError, match=why):
        solved(pool, read._replace(solution=script))


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
    sealed = sealed_set(2, 3, tasksets=("tables", "probability")).tasks
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
