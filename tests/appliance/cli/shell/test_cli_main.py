"""The command line without a daemon: help, usage, exit codes, documentation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from forked_commands import run_forked
from sandbox_commands import in_process
from tables import table
from typer.testing import CliRunner

from appliance.cli.main import COMMANDS, NO_READER, app
from appliance.cli.show.docs import PAGES, cli_page
from appliance.cli.show.printing import cycle_state, show_table
from appliance.errors import ExitCode
from appliance.records.cycles import Cycle, CycleState

ASSAY = (sys.executable, "-m", "appliance.cli.main")
RUN = "from appliance.cli.entry import main; main()"


def run(tmp_path: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "XDG_C", "XDG_D"))}
    places = {"ASSAY_DATA": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    result = run_forked(arguments, inherited | places | environ, timeout=120)
    return subprocess.CompletedProcess(result.args, result.returncode, result.stdout.decode(), result.stderr.decode())


def test_gpus_have_the_numbers_of_nvidia_smi_in_all_that_a_command_starts() -> None:
    program = "import atexit, os; atexit.register(lambda: print(os.environ.get('CUDA_DEVICE_ORDER')))"
    environ = dict(os.environ) | {"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}
    command = [sys.executable, "-c", f"{program}\nfrom appliance.cli.main import main\nmain()", "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, env=environ, check=True, timeout=150)
    assert shown.stdout.splitlines()[-1] == "PCI_BUS_ID"


def commands(group: object = None, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command of the tree, as the words that a person types."""
    group = group or typer.main.get_command(app)
    found = []
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        deeper = hasattr(command, "commands")
        found += commands(command, (*path, name)) if deeper else [(*path, name)]
    return found


def test_the_commands_are_those_that_the_product_promises() -> None:
    promised = "serve status tui submit verify bundle/pack bundle/unpack doctor demo stop jobs/ls jobs/show model/ls "
    promised += "jobs/watch jobs/cancel jobs/retry jobs/validate "
    promised += "model/compare model/show engine/serve "
    promised += "model/approve model/reject model/rollback config/show cycle/start cycle/ls sandbox/run sandbox/shell "
    promised += "sandbox/snapshot sandbox/rm sandbox/ls sandbox/stats sandbox/sweep sandbox/selftest sandbox/bench "
    promised += "check/answer check/smt check/lean check/code check/checklist check/exact check/predicate "
    promised += "cycle/show cycle/watch cycle/cancel rollouts/ls rollouts/show logs "
    promised += "check/selftest curriculum/ls curriculum/show "
    promised += "key/new key/ls key/show key/admit key/revoke audit/ls audit/verify audit/export audit/renew "
    promised += "policy/check policy/explain policy/backtest policy/simulate policy/budget policy/sign "
    promised += "model/provenance broker cluster/start cluster/join cluster/status cluster/leave"
    assert {"/".join(command) for command in commands()} >= set(promised.split())


def test_the_page_of_commands_has_every_command_with_its_options() -> None:
    sections = dict(re.findall(r"(?ms)^## (assay[^\n]*)\n(.*?)(?=^## |\Z)", cli_page()))
    for command in commands():
        text = sections[f"assay {' '.join(command)}"]
        group = typer.main.get_command(app)
        for part in command:
            group = group.get_command(None, part)
        for parameter in group.params:
            for option in parameter.opts:
                assert not option.startswith("--") or option in text, (command, option)


def test_docs_build_writes_every_page_and_says_where(tmp_path) -> None:
    out = tmp_path / "reference"
    ran = in_process(["docs", "build", "--out", str(out)])
    assert (ran.returncode, {page.name for page in out.iterdir()}) == (0, set(PAGES))
    assert all(page.read_text().startswith("# ") for page in out.iterdir())
    (tmp_path / "file").write_text("")
    refused = in_process(["docs", "build", "--out", str(tmp_path / "file")])
    assert (refused.returncode, "cannot write to" in refused.stderr) == (2, True)


INTERRUPTED = """
import os, signal, sys
class Finder:
    def find_spec(self, name, *rest):
        if name == "typer": os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from appliance.cli.entry import main
main()
"""


def interrupted(*typed: str, ignored: bool) -> subprocess.CompletedProcess[str]:
    """The command, which gets Ctrl-C while its modules are loaded."""
    before = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)" if ignored else ""
    command = [sys.executable, "-c", before + INTERRUPTED, *typed]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_ctrl_c_while_modules_are_loaded_ends_with_130_and_says_nothing() -> None:
    result = interrupted(ignored=False)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


def test_ctrl_c_is_ignored_where_whoever_began_the_command_said_so() -> None:
    result = interrupted("--version", ignored=True)
    assert (result.returncode, result.stdout.split()[:1], result.stderr) == (0, ["assay"], "")


EMPTY = ["model show", "model compare champion", "jobs show", "cycle show", "cycle cancel", "rollouts show", "verify"]
EMPTY += ["rollouts ls --job", "policy check", "audit export", "sandbox run", "sandbox rm", "key show", "--data"]
EMPTY += ["model approve x --as", "model approve x --key", "submit", "config show --data", "config show --explain"]
EMPTY += ["sandbox run -c 1 --tier", "sandbox run -c 1 --backend"]


@table("command", EMPTY)
def test_an_empty_name_is_a_usage_error_everywhere(command: str) -> None:
    refused = CliRunner().invoke(app, [*command.split(), ""])
    assert (refused.exit_code, "is empty" in refused.output) == (2, True), refused.output


def test_what_is_no_name_may_be_empty() -> None:
    judged = CliRunner().invoke(app, ["check", "answer", "--gold", "1", "--answer", ""])
    assert (judged.exit_code, "the answer is empty" in judged.output) == (1, True)


def test_a_table_fits_the_terminal_but_for_its_names_and_is_whole_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    name, text = "night-20260101t000000-abcd.train.3.t17.5", "a long answer " * 20
    for screen in (None, 90):
        show_table(("rollout", "verdict", "answer"), [(name, "hack_suspected", text)], empty="", screen=screen)
    heading, whole, _, cut = capsys.readouterr().out.splitlines()
    assert (heading.split(), whole.endswith(text.rstrip())) == (["rollout", "verdict", "answer"], True)
    assert (len(cut) <= 90, cut.startswith(f"{name}  hack_suspected  a long"), cut.endswith("…")) == (True, True, True)


def test_every_exit_code_is_documented() -> None:
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", cli_page(), re.MULTILINE)}
    assert documented == {int(code) for code in ExitCode} | {130, NO_READER}


def test_every_command_explains_itself_without_importing_anything_heavy(tmp_path) -> None:
    program = (
        "import contextlib, io, sys\n"
        "from appliance.cli.main import app\n"
        "import typer\n"
        "command = typer.main.get_command(app)\n"
        "for command_line in sys.argv[1:]:\n"
        "    output = io.StringIO()\n"
        "    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):\n"
        "        command([*command_line.split(), '--help'], prog_name='assay')\n"
        "    assert len(output.getvalue().splitlines()) > 4, command_line\n"
        "print(*sys.modules)\n"
    )
    arguments = [" ".join(command) for command in commands()]
    result = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr
    imported = {name.partition(".")[0] for name in result.stdout.split()}
    assert "typer" in imported
    assert imported.isdisjoint({"torch", "sympy", "httpx", "sqlalchemy", "rich", "textual", "starlette", "uvicorn"})


def test_the_list_of_commands_says_of_each_the_first_sentence_of_its_own_help() -> None:
    group = typer.main.get_command(app)
    for name, row in COMMANDS.items():
        assert " ".join(group.get_command(None, name).help.split()).startswith(row.help), name


def test_the_list_of_commands_is_shown_without_loading_a_command_or_pydantic() -> None:
    program = "import sys; sys.argv[1:] = ['--help']; from appliance.cli.main import main\n"
    program += "try:\n    main()\nfinally:\n    print(*sys.modules)\n"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    imported = set(result.stdout.split())
    assert "appliance.cli.main" in imported
    assert imported.isdisjoint(
        {"pydantic", "rich", "appliance.cli.check.commands", "appliance.config.configuration", "policies"}
    )


def test_status_loads_nothing_that_its_answer_does_not_hold(tmp_path) -> None:
    program = "import sys; sys.argv[1:] = ['status']; from appliance.cli.main import main\n"
    program += "try:\n    main()\nfinally:\n    print(*sys.modules)\n"
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "ASSAY_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    imported = set(result.stdout.split())
    assert "appliance.client.connection" in imported
    unwanted = {
        "rich",
        "cryptography",
        "verifiers",
        "appliance.records.jobs",
        "appliance.ledger",
        "appliance.config.configuration",
    }
    assert imported.isdisjoint(unwanted)


def test_a_fault_anywhere_in_the_configuration_is_said_by_what_asks_the_daemon(tmp_path: Path) -> None:
    result = run(tmp_path, "status", ASSAY_RECIPE__TRAINING__STEPS="few")
    assert (result.returncode, "ASSAY_RECIPE__TRAINING__STEPS" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("state", "phase", "shown"), [("done", "done", "c done"), ("failed", "training", "c failed, training")]
)
def test_the_phase_of_a_cycle_is_said_where_it_says_more_than_its_state(state: str, phase: str, shown: str) -> None:
    cycle = Cycle(id="c", kind="night", seed=0, plan={}, phase=phase, state=CycleState(state), created="", updated="")
    assert cycle_state(cycle) == shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["status", "--frobnicate"],
        ["model", "approve"],
        ["jobs", "ls", "--limit", "0"],
        ["submit"],
        ["submit", "--question", "q", "--check", "x > 1", "--expect", "2"],
        ["submit", "--question", "q", "--domain", "astral"],
        ["submit", "/no/such/file.toml"],
        ["submit", "/"],
        ["submit", "job.toml", "--question", "q"],
        ["demo", "--json", "/no/such/folder/result.json"],
        ["demo", "--json", "/"],
        ["demo", "--data", ""],
        ["--data", "", "status"],
        ["submit", "--question", "q", "--expect", "1", "--budget", "many"],
        ["cycle", "start", "--seed", str(1 << 62)],
        ["train", "--recipe", "seedling", "--dry-run", "--seed", str(1 << 62)],
        ["demo", "--seed", str(1 << 62)],
    ],
    ids=" ".join,
)
def test_usage_errors_end_with_2_and_say_what_to_do(tmp_path, arguments) -> None:
    failed = run(tmp_path, *arguments)
    assert failed.returncode == 2
    assert len(failed.stderr.splitlines()) >= 2
    assert "Traceback" not in failed.stderr


@pytest.mark.parametrize("arguments", [["status"], ["jobs", "ls"], ["model", "rollback"], ["cycle", "start"], ["stop"]])
def test_without_a_daemon_every_command_that_needs_one_ends_with_3(tmp_path, arguments) -> None:
    failed = run(tmp_path, *arguments)
    assert (failed.returncode, "assay serve" in failed.stderr) == (3, True)


def test_the_version_is_the_package_s_own(tmp_path) -> None:
    assert re.fullmatch(r"assay \d+\.\d+\.\d+", run(tmp_path, "--version").stdout.strip())


def test_the_configuration_says_where_each_value_comes_from(tmp_path) -> None:
    result = run(tmp_path, "config", "show", "--origin", ASSAY_SANDBOX__PIDS="99")
    line = next(line for line in result.stdout.splitlines() if line.startswith("sandbox.pids"))
    assert "99" in line
    assert line.endswith("ASSAY_SANDBOX__PIDS")


def test_the_data_folder_may_be_named_before_or_after_the_command(tmp_path) -> None:
    for arguments in (["--data", "/tmp/a", "config", "show"], ["config", "show", "--data", "/tmp/a"]):
        assert 'data = "/tmp/a"' in run(tmp_path, *arguments).stdout


def test_an_error_that_nobody_foresaw_is_said_and_its_traceback_is_one_variable_away(tmp_path) -> None:
    program = "import sys; from appliance.cli.main import complain; sys.exit(complain(ZeroDivisionError('x\\x1b[2J')))"
    for level, shown in (("info", False), ("debug", True)):
        result = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "ASSAY_LOG__LEVEL": level},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (result.returncode, "ZeroDivisionError" in result.stderr) == (5, True)
        assert "\n  File" not in result.stderr or shown


def test_who_wants_no_more_of_the_output_ends_the_command_with_a_code_of_its_own(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = subprocess.run(
            [*ASSAY, "config", "show", "--json"],
            env=os.environ | {"ASSAY_DATA": str(tmp_path / "data")},
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
        )
    finally:
        os.close(writing)
    assert (result.returncode, result.stderr) == (141, b"")


@pytest.mark.parametrize("closed", ["0", "1", "2", "0 1 2"])
def test_a_command_whose_streams_are_closed_does_its_work_and_prints_into_no_file_of_ours(
    tmp_path: Path, closed: str
) -> None:
    shutting = "; ".join(f"os.close({number})" for number in closed.split())
    places = {"ASSAY_DATA": str(tmp_path / "data"), "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    started = f"import os, sys; {shutting}; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    ended = subprocess.run(
        [sys.executable, "-c", started, "-c", RUN, "schema"], env=places, capture_output=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ("1" in closed) == (ended.stdout == b"")


def test_a_file_that_nobody_can_read_ends_with_the_code_of_usage_and_is_never_waited_for(tmp_path: Path) -> None:
    deep, long, pipe = (tmp_path / name for name in ("deep.toml", "long.toml", "pipe"))
    deep.write_text("a = " + "[" * 50_000)
    long.write_text(f"version = {'9' * 5_000}\n")
    os.mkfifo(pipe)
    for command, file in [("policy check", deep), ("policy check", pipe), ("submit", long), ("submit", pipe)]:
        ended = run(tmp_path, *command.split(), str(file))
        assert ended.returncode == ExitCode.USAGE, ended.stderr
        assert f"assay: {file}" in ended.stderr
        assert "unexpected" not in ended.stderr
    for kind in ("code", "smt"):
        ended = run(tmp_path, "check", kind, "--spec", str(long), "--submission", str(deep))
        assert ended.returncode == ExitCode.USAGE, ended.stderr
        assert "TOML" in ended.stderr
