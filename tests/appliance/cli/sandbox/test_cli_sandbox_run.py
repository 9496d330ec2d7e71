"""`assay sandbox run` and its kin: with a running broker, with a private one, and without."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from importlib import resources
from pathlib import Path

import guest_roots as building
import pytest
from sandbox_commands import ASSAY, broker_settings, environ, here, run
from typer.testing import CliRunner

from appliance.cli.main import app
from appliance.cli.shell import broker_target
from appliance.cli.shell.options import DATA
from appliance.errors import AssayError, ExitCode
from runtime.backends.lease import state_mark
from runtime.sandbox import Limits


def test_code_runs_and_its_output_comes_out(served: Path) -> None:
    summary = run(served, "run", "-", typed="import os\nprint(6 * 7, os.getuid())")
    assert (summary.returncode, summary.stdout, summary.stderr) == (0, "42 1000\n", "")


@pytest.mark.parametrize(
    ("code", "arguments", "message"),
    [
        ("print(1)\n1 / 0", (), "  line 2, in <module>: 1 / 0\nZeroDivisionError: division by zero\n"),
        ("raise SystemExit(0)", (), "SystemExit: 0"),
        ("while True: pass", ("--seconds", "0.3"), "timeout: the call took longer than 0.3 seconds"),
        ("print('y' * 999)", ("--set", "output_bytes=100"), "output: "),
        ("import os; os._exit(0)", (), "died: "),
        ("x = bytearray(900 << 20)", ("--memory", "64"), "memory: "),
        ("raise ValueError('\\x1b[2J\\nsecond')", (), "ValueError: \\x1b[2J second"),
    ],
)
def test_code_that_fails_ends_with_1_and_says_how(
    served: Path, code: str, arguments: tuple[str, ...], message: str
) -> None:
    summary = here(served, "run", "-c", code, *arguments)
    assert summary.returncode == 1
    assert message in summary.stderr
    assert "\x1b" not in summary.stderr


def test_a_persons_own_call_has_more_time_than_a_models_and_a_timeout_says_how_it_gets_more(served: Path) -> None:
    slow = here(served, "run", "-c", f"import time; time.sleep({Limits().call_seconds + 0.5}); print('done')")
    assert (slow.returncode, slow.stdout) == (0, "done\n")
    ended = here(served, "run", "-c", "while True: pass", "--seconds", "0.3")
    assert "give a call more time with --seconds S" in ended.stderr


def test_what_it_printed_cannot_steer_a_terminal_unless_that_is_wanted(served: Path) -> None:
    code = "print('\\x1b]0;title\\x07 \\u202e \\r')\nprint('two')"
    assert run(served, "run", "-c", code).stdout == "\\x1b]0;title\\x07 \\u202e \\r\ntwo\n"
    assert run(served, "run", "--raw", "-c", code).stdout == "\x1b]0;title\x07 \u202e \r\ntwo\n"


def test_json_says_all_of_it_and_failing_is_still_1(served: Path) -> None:
    summary = here(served, "run", "--json", "-c", "print('\\x1b')\n1 / 0")
    found = json.loads(summary.stdout)
    assert (summary.returncode, summary.stderr) == (1, "")
    assert (found["status"], found["output"], found["error"]) == (
        "exception",
        "\x1b\n",
        "ZeroDivisionError: division by zero",
    )
    assert found["usage"]["calls"] == 1
    assert found["tier"] == "sandbox"


def test_a_tier_among_others_can_be_asked_for(served: Path) -> None:
    for tier in ("shared", "process"):
        assert json.loads(here(served, "run", "--json", "--tier", tier, "-c", "print(2 + 2)").stdout)["tier"] == tier


def test_files_and_folders_are_copied_in(served: Path, tmp_path: Path) -> None:
    (tmp_path / "folder/deep").mkdir(parents=True)
    (tmp_path / "folder/deep/a").write_text("inside")
    (tmp_path / "one").write_bytes(b"\x00\xff")
    code = "print(open('/work/in/deep/a').read(), open('/tmp/one', 'rb').read())"
    pairs = ("--file", f"{tmp_path}/folder:/work/in", "--file", f"{tmp_path}/one:/tmp/one")
    assert here(served, "run", "-c", code, *pairs).stdout == "inside b'\\x00\\xff'\n"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("-", "-c", "1"),
        ("-c", "1", "--tier", "none"),
        ("-c", "1", "--tier", "shared", "--file", "/etc/hostname:/work/a"),
        ("-c", "1", "--backend", "docker"),
        ("-c", "1", "--file", "/etc/hostname"),
        ("-c", "1", "--file", "/etc/hostname:/etc/a"),
        ("-c", "1", "--file", "/no/such:/work/a"),
        ("-c", "1", "--set", "pids"),
        ("-c", "1", "--set", "nothing=1"),
        ("-c", "1", "--set", "pids=1"),
        ("-c", "1", "--seconds", "inf"),
        ("-c", "1", "--seconds", "nan"),
        ("-c", "1", "--memory", "0"),
        ("-c", "1", "--from", "latest"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_understood_ends_with_2_and_says_why(served: Path, arguments: tuple[str, ...]) -> None:
    summary = CliRunner().invoke(app, ["--data", str(served), "sandbox", "run", *arguments])
    assert summary.exit_code == 2
    assert "Error: Invalid value" in summary.output


@pytest.mark.parametrize("limit", Limits.model_fields)
def test_no_number_that_a_limit_cannot_be_is_a_fault_of_the_program(served: Path, limit: str) -> None:
    options = {"call_seconds": "--seconds", "memory_mib": "--memory"}
    for value in ("nan", "inf", "-inf", "1e400", "1e308", "-1", "-1e308", "9" * 30, "9" * 5_000, "", "x", "0x10"):
        ways = [("--set", f"{limit}={value}"), *([(options[limit], value)] if limit in options else [])]
        for way in ways:
            refused = CliRunner().invoke(app, ["--data", str(served), "sandbox", "run", "-c", "1", *way])
            assert (refused.exit_code, way[0] in refused.output) == (2, True), (way, refused.output)


BEYOND = [
    (("--memory", "900000"), "--memory: memory_mib = 900000", "max_memory_mib = 16384"),
    (("--seconds", "100000"), "--seconds: call_seconds = 100000", "max_call_seconds = 600"),
    (("--set", "pids=100000"), "--set pids: pids = 100000", "max_pids = 4096"),
    (("--set", "cpus=17"), "--set cpus: cpus = 17", "max_cpus = 16"),
    (("--set", "memory_mib=16385"), "--set memory_mib: memory_mib = 16385", "max_memory_mib = 16384"),
]


@pytest.mark.parametrize(("asked", "limit", "bound"), BEYOND, ids=lambda found: found[-1])
@pytest.mark.parametrize(
    "command", [("run", "-c", "1"), ("snapshot", "-c", "1"), ("shell",)], ids=lambda found: found[0]
)
def test_more_than_the_policy_allows_is_refused_with_both_names(
    served: Path, command: tuple[str, ...], asked: tuple[str, ...], limit: str, bound: str
) -> None:
    refused = here(served, *command, *asked)
    assert (refused.returncode, refused.stdout) == (4, "")
    assert limit in refused.stderr
    assert f"resources.{bound}" in refused.stderr


def test_what_a_command_takes_of_itself_stays_within_the_policy_too(tmp_path: Path, guest_roots: Path) -> None:
    """A shell is patient, and the benchmark asks for what it measures with; an owner may allow less than both."""
    building.lend(guest_roots, tmp_path / "run")
    text = resources.files("policies").joinpath("default_policy.toml").read_text()
    (tmp_path / "policy.toml").write_text(text.replace("max_call_seconds = 600.0", "max_call_seconds = 5.0"))
    assert here(tmp_path, "shell", typed="print(6 * 7)\n").stdout == "42\n"
    refused = here(tmp_path, "bench", "--quick")
    assert (refused.returncode, refused.stdout) == (4, "")
    assert "assay sandbox bench: call_seconds = 10 is more than" in refused.stderr
    assert "resources.max_call_seconds = 5" in refused.stderr


@pytest.mark.parametrize(
    "arguments",
    [("--from", "0" * 64), ("--file", "/dev/null:/work/a"), ("--file", "/etc/hostname:/work/../a")],
    ids=" ".join,
)
def test_what_the_runtime_does_not_take_ends_with_2_too(served: Path, arguments: tuple[str, str]) -> None:
    summary = here(served, "run", "-c", "1", *arguments)
    assert summary.returncode == 2
    assert summary.stderr.startswith("assay: ")
    assert "Traceback" not in summary.stderr


@pytest.mark.parametrize("name", ["/no/such/file.py", "/"])
def test_a_file_that_cannot_be_read_ends_with_2_and_is_named(served: Path, name: str) -> None:
    summary = here(served, "run", name)
    assert (summary.returncode, summary.stderr.startswith(f"assay: {name}: ")) == (2, True)


def test_bytes_that_are_no_text_are_no_program(served: Path) -> None:
    summary = here(served, "run", "-", typed=b"x = 1\n\xff")
    assert (summary.returncode, "not UTF-8 at byte 6" in summary.stderr) == (2, True)


def test_a_backend_that_the_policy_does_not_have_for_such_code_is_refused(
    served: Path, tmp_path: Path, guest_roots: Path
) -> None:
    building.lend(guest_roots, tmp_path / "run")
    summary = here(served, "run", "--backend", "nsjail", "-c", "1")
    assert (summary.returncode, "model_code" in summary.stderr) == (4, True)
    text = resources.files("policies").joinpath("default_policy.toml").read_text()
    (tmp_path / "policy.toml").write_text(text.replace('model_code = "gvisor"', 'model_code = "nsjail"'))
    assert here(tmp_path, "run", "-c", "print('jailed')").stdout == "jailed\n"
    assert here(tmp_path, "run", "--backend", "gvisor", "-c", "1").returncode == 4


def test_a_snapshot_is_kept_listed_continued_and_forgotten(served: Path) -> None:
    snapshot_id = here(served, "snapshot", "-c", "x = [1]\nprint('setting up')")
    name = snapshot_id.stdout.strip()
    assert (snapshot_id.returncode, len(name), snapshot_id.stderr) == (0, 64, "setting up\n")
    further = json.loads(here(served, "snapshot", "--json", "--from", name, "-c", "x.append(2)").stdout)["snapshot"]
    assert here(served, "run", "--from", further, "-c", "print(x)").stdout == "[1, 2]\n"
    assert here(served, "run", "--from", name, "-c", "print(x)").stdout == "[1]\n"
    listed = json.loads(here(served, "ls", "--json").stdout)["snapshots"]
    assert {name, further} <= {each["snapshot"] for each in listed if each["durable"]}
    assert name in here(served, "ls").stdout
    assert here(served, "rm", name, further).returncode == 0
    assert here(served, "rm", name).returncode == 2
    assert name not in here(served, "ls").stdout


def test_of_code_that_fails_nothing_is_kept(served: Path) -> None:
    before = json.loads(here(served, "stats", "--json").stdout)["snapshots_taken"]
    summary = here(served, "snapshot", "-c", "1 / 0")
    assert (summary.returncode, summary.stdout) == (1, "")
    assert json.loads(here(served, "stats", "--json").stdout)["snapshots_taken"] == before


def test_the_broker_says_what_it_has_and_sweeps(served: Path) -> None:
    under_way = subprocess.Popen(
        [*ASSAY, "run", "--seconds", "600", "-c", "import time; time.sleep(600)"], env=environ(served)
    )
    try:
        held = []

        def is_held() -> bool:
            boxes = json.loads(here(served, "ls", "--json").stdout)["boxes"]
            held[:] = [box["backend"] for box in boxes if box["holder"] == under_way.pid]
            return bool(held)

        assert _soon(is_held)  # beside those of commands before it, which may not have ended yet
        assert held == ["gvisor"]
        assert str(under_way.pid) in here(served, "ls").stdout
        assert json.loads(here(served, "stats", "--json").stdout)["boxes_held"] >= 1
        assert "boxes_held" in here(served, "stats").stdout
        assert set(json.loads(here(served, "sweep", "--json").stdout)) == {"owners", "processes", "cgroups", "folders"}
    finally:
        under_way.kill()
        under_way.wait()


@pytest.mark.parametrize("command", ["ls", "stats", "sweep"])
def test_without_a_broker_there_is_nothing_to_ask(tmp_path: Path, command: str) -> None:
    summary = here(tmp_path, command)
    assert (summary.returncode, "assay serve" in summary.stderr) == (3, True)


def test_without_a_broker_and_without_root_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    DATA.set(tmp_path)
    with pytest.raises(AssayError) as refused:
        broker_target.find()
    assert refused.value.code is ExitCode.NOT_RUNNING
    assert "root" in refused.value.message


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_private_broker_ends_with_its_command(
    tmp_path: Path, guest_roots: Path, sent: signal.Signals, code: int
) -> None:
    building.lend(guest_roots, tmp_path / "run")
    assert run(tmp_path, "run", "-c", "print('private')").stdout == "private\n"
    under_way = subprocess.Popen(
        [*ASSAY, "run", "--seconds", "60", "-c", "import os, time; os.fork(); time.sleep(60)"],
        env=environ(tmp_path),
        stderr=subprocess.DEVNULL,
    )
    state = broker_settings(tmp_path).state_dir
    mark = f"assay-{state_mark(state)}."
    try:
        assert _soon(lambda: bool(groups(mark)))
        time.sleep(1.0)
        under_way.send_signal(sent)
        assert under_way.wait(timeout=90) == code
    finally:
        under_way.kill()
        under_way.wait()
    assert _soon(lambda: not groups(mark))
    if sent is signal.SIGINT:
        assert _soon(lambda: not list(state.iterdir()))


def groups(mark: str) -> list[str]:
    return [name for _, below, _ in os.walk("/sys/fs/cgroup") for name in below if name.startswith(mark)]


def _soon(condition) -> bool:
    deadline = time.monotonic() + 120
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.25)
    return True
