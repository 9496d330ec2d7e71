"""Harbor task folders: what is written is read back, a foreign test's score is no verdict, and the rest is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from property_budget import examples
from tables import table

from curriculum.environments.terminal.environment import TERMINAL
from curriculum.environments.terminal.harbor import judge
from curriculum.environments.terminal.harbor.dockerfile import HarborError
from curriculum.environments.terminal.harbor.export import write
from curriculum.environments.terminal.harbor.folder import HarborTask, read_folder
from curriculum.environments.terminal.harbor.settings import MOST_SECONDS
from curriculum.registry import make_draft
from curriculum.worlds.world import World
from runtime.errors import InfrastructureError
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
def pool(tmp_path_factory: pytest.TempPathFactory, full_roots: Path) -> Iterator[SessionPool]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=full_roots, ready=1)
    with Sessions(RuntimeSettings(own=own)) as pool:
        yield pool


@pytest.fixture(scope="module")
def verifier(pool: SessionPool) -> FilesVerifier:
    return FilesVerifier(pool)


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
    [solution] = task.solution
    assert solution.text == "#!/bin/bash\ncp /work/words.txt /work/hello.txt\n"


def test_folders_that_an_image_makes_exist_at_the_start(folder: Path) -> None:
    (folder / "environment/Dockerfile").write_text("FROM debian\nRUN mkdir -p /app/out /data\nWORKDIR /app\n")
    assert read_folder(folder).draft.world["folders"] == ["harbor/data", "out"]


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


@pytest.mark.parametrize("seed", [0, 1, 3, 4][: examples(4, quick=1)])
def test_a_task_that_is_written_is_read_back_with_its_check(tmp_path: Path, verifier: FilesVerifier, seed: int) -> None:
    draft = make_draft("terminal_repairs", 1, seed)
    write(draft, "one", tmp_path / "one")
    task = read_folder(tmp_path / "one")
    assert (task.name, task.foreign, task.draft.spec) == ("assay/one", False, draft.spec)
    assert sorted(map(str, task.draft.world["files"])) == sorted(map(str, draft.world["files"]))
    (tmp_path / "one/tests/assay.json").rename(tmp_path / "one/tests/spec.json")
    test = tmp_path / "one/tests/test.sh"
    test.write_text(f"cp /tests/spec.json /tests/assay.json\n{test.read_text()}")
    own_test = read_folder(tmp_path / "one").draft.spec
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
        ("task.toml", "[environment]\nallow_internet = true\n", "needs a network .environment.allow_internet"),
        ("task.toml", "[environment]\nnetwork_mode = 'public'\n", "needs a network"),
        ("task.toml", "[environment]\nallowed_hosts = ['x.org']\n", "needs a network"),
        ("task.toml", "[agent]\nnetwork_mode = 'public'\n", "needs a network .agent.network_mode"),
        ("task.toml", "[verifier]\nnetwork_mode = 'allowlist'\n", "needs a network .verifier.network_mode"),
        ("task.toml", "[environment]\ntpu = 'v5'\n", "TPU"),
        ("task.toml", "[environment]\nos = 'windows'\n", "another system"),
        ("task.toml", "[environment]\nskills_dir = 'x'\n", "skills"),
        ("task.toml", "[environment]\nworkdir = 'here'\n", "absolute path"),
        ("task.toml", "[environment]\nhealthcheck = {retries = 3}\n", "healthcheck has no command"),
        ("task.toml", "[environment]\nenv = {KEY = '${KEY}'}\n", "variables from the host"),
        ("task.toml", "[solution]\nenv = {KEY = '${KEY}'}\n", "variables from the host"),
        ("task.toml", "[verifier]\nenvironment_mode = 'other'\n", "environment_mode is unknown"),
        ("task.toml", "[verifier]\nenvironment = {docker_image = 'x'}\n", "image of its own"),
        ("task.toml", "[[verifier.collect]]\ncommand = 'x'\nservice = 'db'\n", "another container"),
        ("task.toml", "[[verifier.collect]]\ntimeout_sec = 3\n", "collect has no command"),
        ("task.toml", "artifacts = [{source = '/app/a', service = 'db'}]\n", "another container"),
        ("task.toml", "[environment]\ndocker_image = 'x/y'\n", "image"),
        ("task.toml", "[[steps]]\nname = 'a'\n", "steps"),
        ("task.toml", "[verifier]\nenv = {KEY = '$KEY'}\n", "variables"),
        ("environment/docker-compose.yaml", "services: {}\n", "compose"),
        ("environment/Dockerfile", "FROM debian AS a\nFROM debian\nWORKDIR /app\n", "stages"),
        ("environment/Dockerfile", "FROM debian\nWORKDIR /app\nCOPY ../x /app/\n", "outside"),
        ("environment/Dockerfile", "FROM debian\nWORKDIR /app\nCOPY gone.txt /app/\n", "not exist"),
        ("tests/Dockerfile", "FROM debian\n", "image"),
        ("environment/Dockerfile", "FROM debian\nWORKDIR /tests\n", "working folder"),
        ("environment/Dockerfile", "FROM debian\nWORKDIR /app\nCOPY --from=x /a /b\n", "stages"),
        ("environment/Dockerfile", "FROM debian\nWORKDIR /app\nCOPY words.txt\n", "no target"),
        ("environment/Dockerfile", "FROM debian\nWORKDIR /app\nONBUILD RUN true\n", "not supported"),
        ("environment/Dockerfile", "FROM debian\nWORKDIR /app\nRUN [\"a\n", "cannot be read"),
        ("environment/Dockerfile", "FROM debian\nWORKDIR /app\nENV 1a=2\n", "invalid name"),
        ("environment/Dockerfile", "FROM debian\nWORKDIR /app\nCOPY words.txt /usr/bin/words\x01\n", "no place"),
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


RECIPE = r"""
FROM someone/t-bench/ubuntu-24-04:20250624
ARG VERSION=8.4.1
ENV DEBIAN_FRONTEND=noninteractive LEVEL="two words"
ENV PATH="/opt/tool/bin:${PATH}"
# a comment in between
RUN apt-get update && \
    apt-get install -y --no-install-recommends python3-pip jq sqlite3=3.1 && \
    # another
    ln -s /usr/bin/python3 /usr/bin/python && rm -rf /var/lib/apt/lists/*
RUN pip3 install --no-cache-dir --break-system-packages pytest==$VERSION "pandas>=2,<3" || true
RUN --mount=type=cache,target=/root/.cache pip install -r /app/needs.txt && python3 -m pip install git+https://x/y.git
RUN curl -sSf https://sh.rustup.rs | sh -s -- -y
RUN useradd -m agent; chown agent /data
WORKDIR /app
COPY words.txt needs.txt ./
COPY ["words.txt", "/data/inner/"]
COPY words.txt /etc/tool/words.conf
COPY --chmod=755 *.txt /opt/tool/
COPY <<EOF /app/given.txt
from here
EOF
RUN mkdir -p /app/out /data/empty && chmod +x /app/words.txt
RUN for n in 1 2; do echo $n; done > /app/numbers.txt; cd /data && sort inner/words.txt > sorted.txt
USER agent
CMD ["bash"]
"""


def test_a_recipe_has_packages_files_folders_and_commands_and_names_the_rest(folder: Path) -> None:
    (folder / "environment/Dockerfile").write_text(RECIPE)
    (folder / "environment/needs.txt").write_text("# ours\nflask==3.0  # web\n--index-url x\n")
    (folder / "tests/test.sh").write_text("pip install requests\nuvx -p 3.13 -w pytest-json==1.0 pytest /tests/t.py\n")
    found = read_folder(folder)
    recipe = found.recipe
    assert recipe.pip == ("pytest==8.4.1", "pandas>=2,<3", "requests", "pytest-json==1.0", "flask==3.0")
    assert recipe.apt == ("jq", "sqlite3")
    assert [one.partition(" https")[0][:34] for one in found.lost] == [
        "pip install git+https://x/y.git",
        "RUN curl -sSf",
    ]
    files = {one["path"]: one.get("mode", "644") for one in found.draft.world["files"]}
    assert files["harbor/opt/tool/words.txt"] == "755"
    assert {"words.txt", "given.txt", "harbor/data/inner/words.txt", "harbor/etc/tool/words.conf"} <= set(files)
    assert {"out", "harbor/data/empty"} <= set(found.draft.world["folders"])
    assert dict(found.draft.world["variables"])["PATH"] == "/work/harbor/opt/tool/bin:/usr/bin:/bin"
    assert dict(found.draft.world["variables"])["LEVEL"] == "two words"
    assert recipe.steps[0] == "cd /work && chmod +x /work/words.txt"
    assert recipe.steps[1].startswith("cd /work && for n in 1 2; do")
    assert "cd /work/harbor/data && sort" in recipe.steps[1]
    assert any("ordinary user" in note and "chown" in note for note in found.notes)


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("FROM nvidia/cuda:12", "FROM nvidia/cuda:12"),
        ("RUN npm install -g x", "npm install"),
        ("RUN git clone https://x/y", "git clone"),
        ("RUN R -e \"install.packages('x')\"", "install.packages"),
        ("ADD https://x/y.tar.gz /app/", "ADD https://x"),
        ("RUN service nginx start", "service nginx"),
        ('ENTRYPOINT ["/usr/sbin/nginx"]', "ENTRYPOINT"),
        ("RUN pip install ./here", "pip install ./here"),
    ],
)
def test_what_cannot_be_reproduced_is_named(folder: Path, line: str, lost: str) -> None:
    base = "" if line.startswith("FROM") else "FROM debian\n"
    (folder / "environment/Dockerfile").write_text(f"{base}{line}\nWORKDIR /app\nCOPY words.txt /app/\n")
    assert lost in "; ".join(read_folder(folder).lost)


def test_a_task_that_asks_for_a_network_is_read_without_one_if_that_is_asked_for(folder: Path) -> None:
    (folder / "task.toml").write_text("[environment]\nallow_internet = true\n")
    with pytest.raises(HarborError) as refused:
        read_folder(folder)
    assert "--without-network" in str(refused.value.hint)
    assert any("nothing can be fetched" in note for note in read_folder(folder, without_network=True).notes)


def note(part: str) -> Callable[[HarborTask], bool]:
    return lambda task: any(part in one for one in task.notes)


def lists(**fields: object) -> Callable[[HarborTask], bool]:
    return lambda task: all(task.draft.world.get(name) == value for name, value in fields.items())


def scored(**fields: object) -> Callable[[HarborTask], bool]:
    return lambda task: all(getattr(task.draft.spec.foreign, name) == value for name, value in fields.items())


ABOUT = '[task]\nname = "o/t"\nversion = "2"\ndescription = "D"\nkeywords = ["k"]\nauthors = [{name = "A"}]\n'
APART = "[verifier]\nenvironment_mode = 'separate'\n"
LEFT_OUT = "artifacts = [{source = '/app', destination = 'all', exclude = ['*.log', 'cache']}]\n"
FIELDS: list[tuple[str, str | Callable[[HarborTask], bool]]] = [
    ("schema_version = '1.4'\n", lists()),
    ("version = '1.0'\n", lists()),
    ("schema_version = '2.0'\n", "schema_version '2.0' is unknown"),
    (ABOUT, lambda task: (task.name, task.about) == ("o/t", "2, D, k, A")),
    ("source = 'hub'\n[metadata]\nanything = 1\n", lambda task: task.about == "hub"),
    ("what = 1\n", "unknown field 'what'"),
    ("[task]\nicon = 'x'\n", "unknown field 'task.icon'"),
    ("[environment]\ncolour = 1\n", "unknown field 'environment.colour'"),
    ("[environment.healthcheck]\ncommand = 'true'\nshell = 'zsh'\n", "unknown field 'environment.healthcheck.shell'"),
    ("artifacts = [{source = '/app/a', mode = 1}]\n", "unknown field 'artifacts.mode'"),
    ("[[verifier.collect]]\ncommand = 'x'\ncwd = '/'\n", "unknown field 'verifier.collect.cwd'"),
    ("[agent]\ntimeout_sec = 60.0\n", note("agent.timeout_sec has no effect: the recipe limits")),
    ("[agent]\ntimeout_sec = -1\n", "agent.timeout_sec is not a number above 0"),
    ("[agent]\nuser = 'agent'\n", "agent.user is 'agent'"),
    ("[agent]\nuser = 'root'\nnetwork_mode = 'no-network'\n", lists()),
    ("[agent]\nallowed_hosts = ['x.org']\n", "needs a network .agent.allowed_hosts"),
    ("[environment]\nbuild_timeout_sec = 60.0\n", note("no image is built")),
    ("[environment]\nnetwork_mode = 'no-network'\n", lambda task: not note("means public")(task)),
    ("[environment]\n", note("means public in Harbor")),
    ("[environment]\ncpus = 1\n", lists()),
    ("[environment]\ncpus = 4\n", "environment.cpus is 4: a terminal has at most 1"),
    ("[environment]\nmemory_mb = 3000\n", note("memory_mb counts if its image installs something")),
    ("[environment]\nmemory_mb = 9000\n", "environment.memory_mb is 9000: a terminal has at most 4096"),
    ("[environment]\nmemory_mb = '2G'\n", "environment.memory_mb is not a number"),
    ("[environment]\nmemory = '8G'\n", "environment.memory is 8192"),
    ("[environment]\nmemory = 'much'\n", "environment.memory is not a size"),
    ("[environment]\nstorage_mb = 10240\n", note("storage_mb has no effect")),
    ("[environment]\nstorage_mb = 20480\n", "environment.storage_mb is 20480"),
    ("[environment]\nstorage = '20G'\n", "environment.storage is 20480"),
    ("[environment]\ngpu_types = ['H100']\n", "GPU"),
    ("[environment]\nmcp_servers = [{name = 'a'}]\n", "MCP"),
    ("[environment]\nenv = {KEY = '/app/x'}\n", lists(variables=[["KEY", "/work/x"]])),
    ("[environment]\nworkdir = '/app/'\n", note("/app is /work here")),
    (
        "[environment.healthcheck]\ncommand = 'test -f /app/words.txt'\ninterval_sec = 1\nretries = 3\n",
        lambda task: task.recipe.healthcheck == "test -f /work/words.txt" and note("runs once before an agent")(task),
    ),
    ("[verifier]\n", scored(seconds=MOST_SECONDS)),
    ("[verifier]\ntimeout_sec = 30\n", scored(seconds=30)),
    ("[verifier]\ntimeout_sec = 3600\n", note("verifier.timeout_sec is more than 600")),
    ("[verifier]\nuser = 'tester'\n", "verifier.user is 'tester'"),
    ("[verifier]\nenv = {LEVEL = 3}\n", scored(variables=(("LEVEL", "3"),))),
    ("[verifier]\nenvironment_mode = 'shared'\n", note("fresh sandbox")),
    (APART, lambda task: not note("fresh sandbox")(task)),
    (
        "[[verifier.collect]]\ncommand = 'cp /app/words.txt /app/hello.txt'\ntimeout_sec = 30\nservice = 'main'\n",
        lists(collect=["cd /work && cp /work/words.txt /work/hello.txt"]),
    ),
    ("[[verifier.collect]]\ncommand = 'x'\nuser = 'me'\n", "verifier.collect.user is 'me'"),
    (LEFT_OUT, note("artifacts.exclude has no effect")),
    (LEFT_OUT + APART, lists(excluded=[[".", "*.log"], [".", "cache"]])),
    ("artifacts = [{source = '/app', exclude = [3]}]\n", "not a list of paths"),
    ("artifacts = ['/app/hello.txt']\n", lists(declared=["hello.txt"])),
    ("artifacts = ['/app/../etc/passwd']\n", "artifact '/app/../etc/passwd' is outside the folders"),
    ("artifacts = ['../x']\n", "artifact '../x' is outside the folders"),
    ("[environment]\nworkdir = '/app/../../etc'\n", "workdir has . or .. in it"),
    ("[environment]\nworkdir = '/logs/verifier'\n", "working folder is '/logs/verifier', where its test"),
    ("[environment.healthcheck]\ncommand = 'a\\u0000b'\n".replace("'", '"'), "healthcheck has no command"),
    (
        "[solution]\nenv = {KEY = 'a b'}\n",
        lambda task: task.solution[0].text.startswith("export KEY='a b'\n#!/bin/bash"),
    ),
    ("multi_step_reward_strategy = 'mean'\n", "several steps"),
]


@table("text, outcome", FIELDS)
def test_every_field_of_a_task_is_honoured_named_or_refused(
    text: str, outcome: str | Callable[[HarborTask], bool], folder: Path
) -> None:
    (folder / "task.toml").write_text(text)
    if isinstance(outcome, str):
        with pytest.raises(HarborError, match=outcome):
            read_folder(folder)
    else:
        assert outcome(read_folder(folder))


def test_scores_that_differ_are_none_and_are_told(folder: Path, verifier: FilesVerifier) -> None:
    text = "echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 0}' > /logs/verifier/reward.json\n"
    (folder / "tests/test.sh").write_text(text)
    found = verifier.verify(read_folder(folder).draft.spec, submission(hello_txt="hello\n"))
    assert (found.outcome, found.foreign_reward) == (Outcome.FAIL, None)
    assert found.evidence["scores differ"] == "reward.json 0.0, reward.txt 1.0"


def test_a_test_sees_what_was_made_changed_and_removed_and_not_what_was_removed(
    folder: Path, verifier: FilesVerifier
) -> None:
    text = "test -f /app/new/deep.txt -a ! -e /app/words.txt && echo 1 > /logs/verifier/reward.txt\n"
    (folder / "tests/test.sh").write_text(text)
    spec = read_folder(folder).draft.spec
    left = {"new/deep.txt": {"text": "x", "mode": "644"}, "words.txt": {"problem": "removed"}}
    assert verifier.verify(spec, json.dumps(left)).foreign_reward == 1
    assert verifier.verify(spec, submission(new_txt="x")).foreign_reward is None
    for path in ("../x", "/etc/x", "a/../b", ""):
        wrong = verifier.verify(spec, json.dumps({path: {"text": "x", "mode": "644"}}))
        assert wrong.ground is Ground.UNREADABLE
    under_a_file = {path: {"text": "x", "mode": "644"} for path in ("a", "a/b")}
    assert verifier.verify(spec, json.dumps(under_a_file)).foreign_reward is None
    many = json.dumps({f"f{at}": {"problem": ""} for at in range(501)})
    assert verifier.verify(spec, many).ground is Ground.UNREADABLE


def test_what_is_collected_reaches_the_test_and_a_failure_to_collect_is_no_score(
    folder: Path, pool: SessionPool, verifier: FilesVerifier
) -> None:
    collect = "[[verifier.collect]]\ncommand = 'cp -r /app /logs/artifacts'\n"
    (folder / "task.toml").write_text(LEFT_OUT + APART + collect)
    test = "cd /logs/artifacts && test -f app/hello.txt -a -f app/own.txt -a -f mine.txt -a ! -e /app/a.log"
    (folder / "tests/test.sh").write_text(f"{test} -a ! -e /app/cache && echo 1 > /logs/verifier/reward.txt\n")
    draft = read_folder(folder).draft
    work = "cp words.txt hello.txt; echo 1 > a.log; mkdir cache; echo 1 > cache/x; echo 1 > own.txt"
    with World.open(pool, TERMINAL, draft.world) as world:
        logs = "cd harbor-logs && mkdir artifacts verifier && echo 1 | tee artifacts/mine.txt verifier/reward.txt"
        world.call("run_command", {"command": f"{work}; mkdir harbor-logs; {logs}"})
        left = world.submission()
    assert "harbor-logs/verifier/reward.txt" not in json.loads(left)
    assert verifier.verify(draft.spec, left).foreign_reward == 1
    with World.open(pool, TERMINAL, {**draft.world, "collect": ["cat nothing"]}) as world:
        verdict = verifier.verify(draft.spec, world.submission())
    assert (verdict.ground, verdict.foreign_reward) == (Ground.UNREADABLE, None)
    assert "verifier.collect failed: cat" in verdict.reason


def test_an_agent_does_not_begin_where_the_health_check_fails(folder: Path, pool: SessionPool) -> None:
    world = read_folder(folder).draft.world
    with World.open(pool, TERMINAL, {**world, "healthcheck": "test -f words.txt"}) as healthy:
        assert healthy.call("run_command", {"command": "echo hi"}).text == "hi\n[exit code 0]"
    with (
        World.open(pool, TERMINAL, {**world, "healthcheck": "echo not up; exit 1"}) as broken,
        pytest.raises(InfrastructureError, match="its health check fails: not up"),
    ):
        broken.begun.result()


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
