"""Harbor task folders: what is written is read back, a foreign test's score is no verdict, and the rest is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from curriculum.environments.terminal.harbor import judge
from curriculum.environments.terminal.harbor.dockerfile import HarborError
from curriculum.environments.terminal.harbor.folder import MOST_SECONDS, read_folder, write
from curriculum.registry import make_draft
from runtime.sandbox import SessionPool
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.contract.verdict import Ground, Outcome
from verifiers.files.spec import FileCondition, FilesSpec, same_lines
from verifiers.files.verifier import FilesVerifier, _number

FOLDER = {
    "task.toml": 'version = "1.0"\n[metadata]\ndifficulty = "easy"\n[verifier]\ntimeout_sec = 20.0\n',
    "instruction.md": "Write the word hello into /app/hello.txt. /app/words.txt has it, too.\n",
    "environment/Dockerfile": "FROM debian:bookworm-slim\n# the place\nWORKDIR /app\nCOPY words.txt /app/\n",
    "environment/words.txt": "hello\n",
    "tests/test.sh": "#!/bin/bash\nmkdir -p /logs/verifier\ngrep -qx \"$(cat /tests/word)\" /app/hello.txt && "
    "echo 0.75 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n",
    "tests/word": "hello\n",
    "solution/solve.sh": "#!/bin/bash\ncp /app/words.txt /app/hello.txt\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory, full_roots: Path) -> Iterator[FilesVerifier]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=full_roots, ready=1)
    pool: SessionPool
    with Sessions(RuntimeSettings(own=own)) as pool:
        yield FilesVerifier(pool)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FOLDER.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def submission(**texts: str) -> str:
    return json.dumps({name.replace("_", "."): {"text": text, "mode": "644"} for name, text in texts.items()})


def test_what_goes_out_comes_back_with_the_same_words_files_and_line_ends(tmp_path: Path) -> None:
    draft = make_draft("terminal_repairs", 0, 0)
    odd = {"path": "dos.txt", "text": "one\r\ntwo\rthree\n", "mode": "600"}
    draft = replace(draft, world={**draft.world, "files": [*draft.world["files"], odd]})
    write(draft, "one", tmp_path / "one")
    found = read_folder(tmp_path / "one").draft
    assert found.messages[-1].text == draft.messages[-1].text.strip()
    assert {file["path"]: file for file in found.world["files"]} == {
        file["path"]: file for file in draft.world["files"]
    }
    assert (found.spec, list(found.world["declared"])) == (draft.spec, list(draft.world["declared"]))


@pytest.mark.parametrize(("text", "right"), [("one\r\ntwo\n\n", True), ("one\rtwo\n", False)])
def test_the_judge_of_an_exported_folder_reads_lines_as_the_check_does(tmp_path: Path, text: str, right: bool) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode())
    spec = FilesSpec(declared=("a.txt",), files=(FileCondition(path="a.txt", equals="one\ntwo\n"),))
    assert judge.holds(spec.model_dump(mode="json"), tmp_path) is same_lines(text, "one\ntwo\n") is right


@pytest.mark.parametrize(
    ("text", "score"),
    [("0.5", 0.5), ("1" + "0" * 400, None), ("-" + "9" * 400, None), ("NaN", None), ("1e999", None), ("true", None)],
)
def test_a_score_that_is_no_share_is_none(text: str, score: float | None) -> None:
    assert _number(text) == score


def test_a_folder_becomes_a_task_of_the_terminal(folder: Path) -> None:
    task = read_folder(folder)
    assert (task.draft.environment, task.foreign) == ("terminal", True)
    assert "/work/hello.txt" in task.draft.messages[0].text
    assert "/app" not in task.draft.messages[0].text
    assert set(task.draft.world["declared"]) == {"hello.txt", "words.txt"}
    assert task.draft.world["files"] == [{"path": "words.txt", "text": "hello\n", "mode": "644"}]
    assert task.solution == "#!/bin/bash\ncp /work/words.txt /work/hello.txt\n"


def test_folders_that_an_image_has_and_a_terminal_has_not_are_told(folder: Path) -> None:
    with (folder / "environment/Dockerfile").open("a") as image:
        image.write("RUN mkdir -p /app out /data/in\n")
    [note] = [note for note in read_folder(folder).notes if "Dockerfile makes" in note]
    assert note.endswith("not exist at the start: out, /data/in")


def test_the_score_of_a_foreign_test_is_evidence_and_never_a_pass(folder: Path, verifier: FilesVerifier) -> None:
    spec = read_folder(folder).draft.spec
    solved = verifier.verify(spec, submission(hello_txt="hello\n", words_txt="hello\n"))
    idle = verifier.verify(spec, submission(words_txt="hello\n"))
    assert (solved.outcome, solved.ground, solved.score) == (Outcome.FAIL, Ground.UNKNOWN, 0.0)
    assert (solved.evidence["foreign_reward"], idle.evidence["foreign_reward"]) == (0.75, 0.0)


@pytest.mark.parametrize(
    "script", ["exit 0", "echo 7 > /logs/verifier/reward.txt", "echo NaN > /logs/verifier/reward.txt",
               "echo '{\"reward\": true}' > /logs/verifier/reward.json", "ln -s /tests/word /logs/verifier/reward.txt",
               "mkfifo /logs/verifier/reward.txt"],
)  # fmt: skip
def test_what_is_no_score_between_0_and_1_is_none(folder: Path, verifier: FilesVerifier, script: str) -> None:
    (folder / "tests/test.sh").write_text(f"{script}\n")
    verdict = verifier.verify(read_folder(folder).draft.spec, submission(words_txt="hello\n"))
    assert verdict.evidence["foreign_reward"] is None


@pytest.mark.parametrize("seed", [0, 1, 3, 4])
def test_a_task_that_is_written_is_read_back_with_its_check(tmp_path: Path, verifier: FilesVerifier, seed: int) -> None:
    draft = make_draft("terminal_repairs", 1, seed)
    write(draft, "one", tmp_path / "one")
    task = read_folder(tmp_path / "one")
    assert (task.name, task.foreign, task.draft.spec) == ("assay/one", False, draft.spec)
    assert sorted(map(str, task.draft.world["files"])) == sorted(map(str, draft.world["files"]))
    own_test = read_folder(tmp_path / "one", own_check=False).draft.spec
    before = json.dumps(
        {
            file["path"]: {"text": file["text"], "mode": file["mode"]}
            for file in draft.world["files"]
            if file["path"] in own_test.declared
        }
    )
    rewards = [verifier.verify(own_test, text).evidence["foreign_reward"] for text in (draft.answer, before)]
    assert rewards == [1.0, 0.0], draft.topic


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("task.toml", "[environment\n", "cannot be read"),
        ("task.toml", "environment = 3\n", "not a table"),
        ("task.toml", "[environment]\ngpus = 1\n", "GPU"),
        ("task.toml", "[environment]\nallow_internet = true\n", "network"),
        ("task.toml", "[environment]\nnetwork_mode = 'public'\n", "network"),
        ("task.toml", "[environment]\ndocker_image = 'x/y'\n", "image"),
        ("task.toml", "[[steps]]\nname = 'a'\n", "steps"),
        ("task.toml", "[verifier]\nenv = {KEY = '$KEY'}\n", "variables"),
        ("environment/docker-compose.yaml", "services: {}\n", "compose"),
        ("environment/Dockerfile", "FROM debian\nWORKDIR /app\nRUN apt-get install -y git\n", "apt-get"),
        ("environment/Dockerfile", "FROM debian\nWORKDIR /app\nRUN make all\n", "runs"),
        ("environment/Dockerfile", "FROM debian AS a\nFROM debian\nWORKDIR /app\n", "stages"),
        ("environment/Dockerfile", "FROM nvidia/cuda:12\nWORKDIR /app\n", "image"),
        ("environment/Dockerfile", "FROM debian\n", "working folder"),
        ("environment/Dockerfile", "FROM debian\nWORKDIR /app\nCOPY ../x /app/\n", "outside"),
        ("environment/Dockerfile", "FROM debian\nWORKDIR /app\nCOPY words.txt /etc/words.txt\n", "outside"),
        ("environment/Dockerfile", "FROM debian\nWORKDIR /app\nCOPY gone.txt /app/\n", "not exist"),
        ("tests/test.sh", "curl -LsSf https://astral.sh/uv/install.sh | sh\nuvx pytest\n", "curl"),
        ("tests/Dockerfile", "FROM debian\n", "image"),
        ("environment/Dockerfile", "FROM debian\nWORKDIR /app\nCOPY [1,2]\n", "not text"),
        ("environment/Dockerfile", 'FROM debian\nWORKDIR /app\nCOPY [["a"],"b"]\n', "not text"),
        ("environment/Dockerfile", f"FROM debian\nWORKDIR /app\nCOPY {'[' * 50_000}\n", "cannot be read"),
        ("environment/words.txt", "/app " * 19_999, "more than 100000 characters"),
        ("task.toml", "artifacts = 5\n", "not a list of paths"),
        ("task.toml", 'artifacts = ["/app/words.txt/a"]\n', "is itself a file"),
        ("task.toml", "artifacts = [5]\n", "not a list of paths"),
        ("task.toml", f"artifacts = {'[' * 50_000}\n", "cannot be read"),
        ("task.toml", f"artifacts = {'1' * 5_000}\n", "cannot be read"),
        ("tests/my file.py", "", "unsupported name"),
        ("tests/.hidden", "", "unsupported name"),
        ("tests/grows.txt", "/app " * 19_999, "more than 100000 characters"),
        ("tests/assay.json", '{"declared": ["a"], "foreign": {"files": [], "command": ["a"], "rewards": ["r"]}}',
         "foreign"),
        ("tests/assay.json", "{}", "not a valid spec"),
        ("tests/assay.json", '{"kind": "files", "declared": ["a"]}', "is unusable"),
    ],
)  # fmt: skip
def test_what_cannot_run_here_is_refused_with_the_reason(folder: Path, name: str, text: str, why: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(HarborError, match=why):
        read_folder(folder)


@pytest.mark.parametrize("name", ["task.toml", "instruction.md", "environment/Dockerfile", "tests/test.sh"])
def test_a_folder_that_wants_a_part_is_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(HarborError, match=f"has no {name}"):
        read_folder(folder)


def test_a_folder_that_is_no_harbor_task_is_told_before_any_other_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(b"\xff\xfe")
    with pytest.raises(HarborError, match=r"the folder has no task\.toml") as told:
        read_folder(tmp_path)
    assert told.value.hint.startswith("name a Harbor task folder: task.toml, instruction.md")


def test_the_file_that_keeps_a_folder_in_git_and_a_huge_time_do_no_harm(folder: Path) -> None:
    (folder / "tests/.gitkeep").touch()
    (folder / "task.toml").write_text(f"[verifier]\ntimeout_sec = {'9' * 400}\n")
    test = read_folder(folder).draft.spec.foreign
    assert test.seconds == MOST_SECONDS
    assert not [file for file in test.files if "gitkeep" in file.path]


def test_links_and_what_is_no_text_are_refused(folder: Path) -> None:
    (folder / "tests/more").symlink_to("/etc/passwd")
    with pytest.raises(HarborError, match="not a regular file"):
        read_folder(folder)
    (folder / "tests/more").unlink()
    (folder / "environment/more.bin").write_bytes(b"\xff\xfe")
    with pytest.raises(HarborError, match="not UTF-8 text") as told:
        read_folder(folder)
    assert told.value.hint == "leave it out: only text files are supported"


def test_only_a_task_of_the_terminal_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(HarborError, match="only terminal tasks") as told:
        write(make_draft("arithmetic", 0, 0), "x", tmp_path / "x")
    assert told.value.hint == "use the taskset terminal_repairs"
    (tmp_path / "there").mkdir()
    with pytest.raises(HarborError, match="exists already"):
        write(make_draft("terminal_repairs", 0, 0), "x", tmp_path / "there")
