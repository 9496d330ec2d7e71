"""A broker runs programs that its settings name, behind the same walls as guests, and nothing else of the host."""

from __future__ import annotations

import ast
import os
import select
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from broker_kit import BrokerProbe, profile
from guest_roots import without_userland
from pydantic import ValidationError

from runtime.broker_api import Handle
from runtime.errors import InfrastructureError, RefusedError
from runtime.profile import BackendName, Cause
from runtime.programs import READY, Program
from runtime.settings import BrokerSettings

ECHO = """
import os, sys
os.write(1, bytes.fromhex(sys.argv[1]))
for line in sys.stdin:
    try:
        said = repr(eval(line))
    except BaseException as error:
        said = type(error).__name__
    print(said, flush=True)
"""
SYSTEM = tuple(map(Path, ("/usr", "/lib", "/lib64", sys.base_prefix)))


def program(name: str, code: str = ECHO, folders: tuple[Path, ...] = (), **other: bool) -> Program:
    python = Path(sys.executable).resolve()
    return Program(
        name=name,
        argv=(str(python), "-I", "-S", "-c", code, READY.hex()),
        folders=(*SYSTEM, *folders),
        environment={"LD_LIBRARY_PATH": sysconfig.get_config_var("LIBDIR") or "/usr/lib", "MARK": name},
        **other,
    )


@pytest.fixture(scope="module")
def private_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where only root may walk, as below /root."""
    closed = tmp_path_factory.mktemp("closed")
    folder = closed / "tool" / "data"
    folder.mkdir(parents=True)
    (folder / "file").write_text("data of the tool")
    (closed / "beside").write_text("not for the tool")
    closed.chmod(0o700)
    return folder


@pytest.fixture(scope="module")
def probe(make_settings: Callable[..., BrokerSettings], private_folder: Path) -> Iterator[BrokerProbe]:
    programs = (
        program("echo", folders=(private_folder,)),
        program("unbounded", address_space=False, proc=True),
        program("silent", "import time; time.sleep(60)"),
        program("early", "print('ready')"),
        program("missing", folders=(private_folder / "nowhere",)),
    )
    with BrokerProbe.own(make_settings(programs=programs)) as opened:
        yield opened


def ask(handle: Handle, expression: str, seconds: float = 60.0) -> str:
    os.write(handle.requests, expression.encode() + b"\n")
    received, deadline = b"", time.monotonic() + seconds
    while not received.endswith(b"\n"):
        assert select.select([handle.replies], [], [], max(0.0, deadline - time.monotonic()))[0]
        data = os.read(handle.replies, 1 << 16)
        if not data:
            raise EOFError
        received += data
    return received.decode().strip()


@pytest.fixture(params=list(BackendName))
def echo(request: pytest.FixtureRequest, probe: BrokerProbe) -> Iterator[Handle]:
    handle = probe.launch(profile(backend=request.param, program="echo"))
    yield handle
    probe.end(handle)


def test_a_program_answers_and_sees_its_folders_and_its_environment(echo: Handle, private_folder: Path) -> None:
    assert ask(echo, "1 + 1") == "2"
    assert ask(echo, f"open('{private_folder}/file').read()") == "'data of the tool'"
    assert ask(echo, "os.environ['MARK']") == "'echo'"
    assert ask(echo, "len(os.urandom(8))") == "8"


def test_it_can_change_nothing_but_its_own_tmp(echo: Handle, private_folder: Path) -> None:
    for path in (f"{private_folder}/new", f"{private_folder}/file", "/usr/new", "/new"):
        assert ask(echo, f"open({path!r}, 'w')") in ("OSError", "PermissionError", "FileNotFoundError")
    assert ask(echo, "open('/tmp/of-the-guest-alone', 'w').write('x')") == "1"
    assert not Path("/tmp/of-the-guest-alone").exists()
    assert (private_folder / "file").read_text() == "data of the tool"


def test_it_sees_nothing_else_of_the_host_and_is_nobody_there(echo: Handle, private_folder: Path) -> None:
    closed = private_folder.parents[1]
    for path in (closed / "beside", Path("/home"), Path("/var/log"), Path("/proc/1/environ")):
        output = ask(echo, f"os.stat({str(path)!r})")
        assert output in ("FileNotFoundError", "PermissionError", "NotADirectoryError"), path
    assert ask(echo, f"os.listdir({str(closed)!r})") == "['tool']"
    tops = {path.parts[1] for path in (*SYSTEM, private_folder)} | {"dev", "proc", "sys", "tmp", "etc"}
    assert set(ast.literal_eval(ask(echo, "os.listdir('/')"))) <= tops
    assert ask(echo, "os.getuid()") == "1000"
    assert ask(echo, "__import__('socket').create_connection(('127.0.0.1', 1), 1)") != "None"
    assert ask(echo, "[name for name in os.environ if name.startswith(('PYTEST', 'VIRTUAL', 'USER'))]") == "[]"


def test_it_leaves_no_trace_in_the_root_of_guests(echo: Handle, root_dir: Path) -> None:
    assert ask(echo, "1 + 1") == "2"
    roots = without_userland(root_dir)
    assert roots
    for root in roots:
        assert not {"root", "home"} & {entry.name for entry in root.iterdir()}


def test_its_groups_memory_is_its_end_and_the_broker_says_so(probe: BrokerProbe) -> None:
    handle = probe.launch(profile(backend=BackendName.NSJAIL, program="unbounded", memory_mib=64))
    with pytest.raises(EOFError):
        ask(handle, "len(bytearray(1 << 28))")
    termination = probe.end(handle)
    assert termination.cause is Cause.MEMORY
    assert termination.usage.oom_kills == 1


def test_address_space_is_bounded_unless_the_program_cannot_work_so(probe: BrokerProbe) -> None:
    wanted = "__import__('resource').getrlimit(9)[0]"
    for name, bounded in (("echo", True), ("unbounded", False)):
        handle = probe.launch(profile(backend=BackendName.NSJAIL, program=name, memory_mib=64))
        assert (ask(handle, wanted) == str(256 << 20)) is bounded
        assert (ask(handle, "os.readlink('/proc/self/exe')") == "FileNotFoundError") is bounded
        probe.end(handle)


def test_each_box_is_a_fresh_one_and_none_waits_for_somebody(probe: BrokerProbe) -> None:
    first = probe.launch(profile(backend=BackendName.NSJAIL, program="echo"))
    ask(first, "open('/tmp/left', 'w').close()")
    probe.end(first)
    second = probe.launch(profile(backend=BackendName.NSJAIL, program="echo"))
    assert ask(second, "os.path.exists('/tmp/left')") == "False"
    probe.end(second)
    assert probe.stats()["ready_copies"] == 0


def test_a_client_cannot_make_up_a_program(probe: BrokerProbe) -> None:
    with pytest.raises(RefusedError, match="no program sh"):
        probe.launch(profile(program="sh"))


@pytest.mark.parametrize(("name", "message"), [("early", "did not become ready"), ("missing", "No such file")])
def test_what_does_not_say_ready_is_not_given_away(probe: BrokerProbe, name: str, message: str) -> None:
    with pytest.raises((InfrastructureError, RefusedError), match=message):
        probe.launch(profile(backend=BackendName.NSJAIL, program=name))


def test_settings_that_could_mean_two_things_are_refused(tmp_path: Path) -> None:
    one = program("one")
    with pytest.raises(ValidationError, match="two programs"):
        BrokerSettings(state_dir=tmp_path, root_dir=tmp_path, programs=(one, one))
    for argv, folder in (("python", "/usr"), ("/usr/bin/python3", "usr"), ("/usr/bin/python3", "/usr/../root")):
        with pytest.raises(ValidationError, match="not an absolute path"):
            Program(name="a", argv=(argv,), folders=(Path(folder),))
    with pytest.raises(ValidationError):
        Program(name="../a", argv=("/usr/bin/python3",))


def test_a_folder_inside_another_one_is_mounted_once() -> None:
    folders = tuple(map(Path, ("/usr/lib/python3", "/usr", "/opt/tool")))
    assert Program(name="a", argv=("/usr/bin/python3",), folders=folders).mounts == (Path("/usr"), Path("/opt/tool"))
