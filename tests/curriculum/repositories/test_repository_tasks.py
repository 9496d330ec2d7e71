"""Tasks of a repository: the reference solves each, nothing else does, and no cheat helps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_repository import CART, FILES, pytest_set, small_repository

from benchmarks.repository_cheats import CHEATS, cheated
from curriculum.contract.errors import CurriculumError
from curriculum.environments import ENVIRONMENTS
from curriculum.own.harbor import untouched
from curriculum.own.rows import OwnRow
from curriculum.repositories.journal import Journal
from curriculum.repositories.making import Making
from curriculum.repositories.reading import read_repository
from curriculum.worlds.world import World
from runtime.sandbox import Priority, SessionPool
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.files.spec import FilesSpec
from verifiers.files.verifier import FilesVerifier

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def pool(full_roots: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionPool]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=full_roots, ready=0)
    with Sessions(RuntimeSettings(own=own)) as pool:
        yield pool


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journal") / "tally.jsonl"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_repository(tmp_path_factory.mktemp("tally"))


@pytest.fixture(scope="module")
def making(pool: SessionPool, place: Path, journal: Path) -> Making:
    return Making(read_repository(place), pytest_set(), pool, Journal.in_file(journal), seed="1")


@pytest.fixture(scope="module")
def rows(making: Making) -> list[OwnRow]:
    return list(making.rows(8))


def judged(pool: SessionPool, row: OwnRow, submission: str) -> Verdict:
    assert isinstance(row.spec, FilesSpec)
    return FilesVerifier(pool, priority=Priority.JOB).verify(row.spec, submission)


def edited(row: OwnRow, old: str, new: str) -> str:
    """The faulty source with the fault still in it, and a change."""
    path = next(iter(json.loads(row.answer)))
    text = next(file["text"] for file in row.world["files"] if file["path"] == path)
    assert old in text
    return json.dumps({path: {"text": text.replace(old, new, 1), "mode": "644"}})


def test_every_task_is_solved_by_its_reference_and_by_nothing_that_leaves_the_fault(
    pool: SessionPool, rows: list[OwnRow], making: Making
) -> None:
    assert len(rows) >= 6
    assert (making.counts["tests"], making.counts["stable"]) == (22, 22)
    for row in rows:
        assert judged(pool, row, row.answer).passed, row.origin
        verdict = judged(pool, row, untouched(row))
        assert (verdict.outcome, "tests fail" in verdict.reason) == (Outcome.FAIL, True), row.origin


def test_tasks_have_faults_of_several_kinds_and_statements_about_behaviour(rows: list[OwnRow]) -> None:
    kinds = {row.origin.split()[1] for row in rows}
    assert {"body", "operator"} <= kinds
    for row in rows:
        assert ("should give" in row.question, "/work" in row.question) == (True, True)
        assert "__assay" not in row.question
        [*paths] = json.loads(row.answer)
        for path in paths:
            faulty = next(file["text"] for file in row.world["files"] if file["path"] == path)
            new = {line.strip() for line in FILES[path].splitlines()} - {line.strip() for line in faulty.splitlines()}
            assert not any(len(line) > 9 and line in row.question for line in new)


def test_failing_tests_are_hidden_and_the_others_are_visible(rows: list[OwnRow]) -> None:
    for row in rows:
        assert isinstance(row.spec, FilesSpec)
        assert row.spec.suite is not None
        visible = {file["path"]: file["text"] for file in row.world["files"]}
        gone = [path for path in ("tests/test_cart.py", "tests/test_text.py") if visible[path] != FILES[path]]
        assert gone, row.origin
        assert any("def test_" in visible[path] for path in ("tests/test_cart.py", "tests/test_text.py"))
        blind = "".join(file.text for file in row.spec.suite.tree if file.path.startswith("tests/"))
        assert ("== 800" in blind, "__assay_seen__" in blind) == (False, True)


def test_an_interrupted_run_is_resumed_with_the_same_tasks(
    pool: SessionPool, place: Path, journal: Path, rows: list[OwnRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    with journal.open("a") as stream:
        stream.write('["cut off')

    def never(*_: object) -> None:
        raise AssertionError("everything has run")

    monkeypatch.setattr(Making, "_sandbox", never)
    again = Making(read_repository(place), pytest_set(), pool, Journal.in_file(journal), seed="1")
    assert [row.question for row in again.rows(8)] == [row.question for row in rows]


@pytest.fixture(scope="module")
def row(rows: list[OwnRow]) -> OwnRow:
    """A task with one changed place in the cart."""
    return next(
        one for one in rows if "body" not in one.origin and list(json.loads(one.answer)) == ["src/tally/cart.py"]
    )


@pytest.mark.parametrize("cheat", CHEATS)
def test_sources_that_reach_for_the_judge_do_not_pass(pool: SessionPool, row: OwnRow, cheat: str) -> None:
    submission = cheated(row, cheat)
    compile(json.loads(submission)["src/tally/cart.py"]["text"], "cart.py", "exec")
    verdict = judged(pool, row, submission)
    assert not verdict.passed, verdict.reason


def test_a_result_that_is_equal_to_everything_does_not_pass(pool: SessionPool, row: OwnRow) -> None:
    liar = (
        "class Liar:\n    def __eq__(self, other):\n        return True\n\n    __hash__ = None\n\n\n"
        "def cheapest(prices):\n    return Liar()\n\n\ndef discount(total, percent):\n    return Liar()\n\n\n"
        "class Cart:\n    lines = Liar()\n\n    def add(self, *given):\n        pass\n\n    total = remove = add\n"
    )
    path = "src/tally/cart.py"
    assert not judged(pool, row, json.dumps({path: {"text": liar, "mode": "644"}})).passed


def test_nothing_but_sources_leaves_the_terminal(pool: SessionPool, row: OwnRow) -> None:
    commands = [
        "printf 'def test_nothing():\\n    pass\\n' > tests/test_cart.py; rm tests/test_text.py",
        "printf 'def pytest_collection_modifyitems(items):\\n    items.clear()\\n' > conftest.py; cp conftest.py tests",
        "printf 'import os\\nos._exit(0)\\n' > sitecustomize.py; cp sitecustomize.py src/usercustomize.py",
        "printf 'import os; os._exit(0)\\n' > src/zz.pth; printf '[pytest]\\naddopts = --co\\n' > pytest.ini",
        "printf '[tool.pytest.ini_options]\\naddopts = \"--co\"\\n' > pyproject.toml",
        "mkdir -p src/tally/__pycache__; cp src/tally/text.py src/tally/__pycache__/cart.cpython-311.pyc",
        "mkdir -p suite; echo '[]' > suite/result; echo '<testsuite/>' > junit.xml",
    ]
    with World.open(pool, ENVIRONMENTS[row.environment], row.world) as world:
        world.begun.result()
        for command in commands:
            assert world.call("run_command", {"command": command}).text.endswith("[exit code 0]")
        assert json.loads(world.submission() or "") == {}
        world.call("run_command", {"command": "cd src/tally; mv cart.py ../../other.py; ln -s ../../other.py cart.py"})
        assert "a link" in (world.submission() or "")
        world.call("run_command", {"command": "rm src/tally/cart.py"})
        submission = world.submission() or ""
    assert json.loads(submission) == {"src/tally/cart.py": {"problem": "removed"}}
    assert not judged(pool, row, submission).passed


def test_the_visible_tests_run_in_the_terminal_and_a_repair_is_submitted(pool: SessionPool, row: OwnRow) -> None:
    with World.open(pool, ENVIRONMENTS[row.environment], row.world) as world:
        world.begun.result()
        said = world.call("run_command", {"command": "python3 -m pytest -q -o addopts= -p no:cacheprovider"}).text
        assert ("passed" in said, "failed" in said) == (True, False), said
        assert "pre" not in world.call("run_command", {"command": "ls -a | grep -c git"}).text
        placed = json.dumps(json.loads(row.answer)["src/tally/cart.py"]["text"])
        world.call("run_command", {"command": f'python3 -c \'open("src/tally/cart.py", "w").write({placed})\''})
        submission = world.submission() or ""
    if submission != "{}":  # the shell took the quotes of the source
        assert judged(pool, row, submission).passed


def test_undeclared_files_are_not_accepted(pool: SessionPool, row: OwnRow) -> None:
    more = json.loads(row.answer) | {"conftest.py": {"text": "", "mode": "644"}}
    verdict = judged(pool, row, json.dumps(more))
    assert (verdict.passed, "not a declared file" in verdict.reason) == (False, True)


def test_failing_and_flaky_tests_do_not_count(pool: SessionPool, tmp_path: Path) -> None:
    place = small_repository(tmp_path / "tally")
    (place / "tests" / "test_more.py").write_text(
        "import datetime\nimport random\nimport time\nimport urllib.request\n\n\n"
        "def test_fails():\n    assert 1 == 2\n\n\n"
        "def test_flaky():\n    assert random.random() == random.random() or True\n    assert random.random() < 2\n\n\n"
        "def test_drawn():\n    drawn = random.random()\n    assert drawn == float(drawn)\n\n\n"
        "def test_slow():\n    time.sleep(0.001)\n    assert 1 == 1\n\n\n"
        "def test_today():\n    assert datetime.date.today().year > 2000\n\n\n"
        "def test_network():\n    urllib.request.urlopen('http://example.org', timeout=3)\n"
    )
    making = Making(read_repository(place), pytest_set(), pool, Journal({}), seed="1")
    assert not any(name.startswith("tests/test_more.py::test_") for name in making.stable() if "flaky" not in name)
    assert (making.counts["failing"], making.counts["unstable"]) == (2, 3)
    assert "test_fails" in making.first_failure or "test_network" in making.first_failure


def test_a_repository_whose_tests_all_fail_is_refused_with_the_first_reason(pool: SessionPool, tmp_path: Path) -> None:
    place = small_repository(tmp_path / "tally")
    (place / "src" / "tally" / "cart.py").write_text(CART + "\nimport missing_package\n")
    (place / "tests" / "test_text.py").unlink()
    with pytest.raises(CurriculumError, match="none of its 0 tests passes here"):
        Making(read_repository(place), pytest_set(), pool, Journal({}), seed="1").stable()


def test_setup_code_never_runs(pool: SessionPool, tmp_path: Path) -> None:
    place = small_repository(tmp_path / "tally")
    left = tmp_path / "left"
    (place / "setup.py").write_text(f"open({str(left)!r}, 'w').write('ran')\nraise SystemExit(1)\n")
    (place / "tests" / "conftest.py").write_text(f"open({str(left)!r}, 'w').write('ran')\n")
    with pytest.raises(CurriculumError):  # its conftest fails in the sandbox, where that folder does not exist
        Making(read_repository(place), pytest_set(), pool, Journal({}), seed="1").stable()
    assert not left.exists()
