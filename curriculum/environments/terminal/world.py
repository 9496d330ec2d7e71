"""A shell in a sandbox, with files to work on: the world's program.

This file is source for the world's sandbox. What always holds: each command is a process of its own in /work, with
limits, and nothing that it started outlives it. How long one may take is the host's to say, by a signal (SIGURG): no
clock in here tells what others took of the processors. What is submitted are the declared files as they are then:
regular ones of bounded size below /work. A command that ends this program's own process, which has the same user, ends
the world: what it had is lost, and nothing is submitted.
"""

import contextlib
import fnmatch
import json
import os
import resource
import selectors
import signal
import stat
import subprocess
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curriculum.worlds.guest import ToolError

    SETUP: dict[str, Any] = {}


WORK = os.path.realpath(".")
LONGEST = SETUP.get("seconds", 1.5)
OVER, _TOLD = os.pipe()
"""Has something to read once the host has said that the time of a call is over."""
os.set_blocking(OVER, False)
os.set_blocking(_TOLD, False)
signal.set_wakeup_fd(_TOLD, warn_on_full_buffer=False)
signal.signal(signal.SIGURG, lambda _number, _frame: None)
COMMAND_CHARS, OUTPUT_BYTES, ANSWER_BYTES, FILE_BYTES = 8_000, 8_000, 11_000, 65_536
NAP_SECONDS, CLOSED_SECONDS = 0.003, 0.2
"""A nap while seconds that the model chose, or those after a closed output, are counted: what is longer is not counted,
because then others had the processors."""
LIMITS = (
    (resource.RLIMIT_AS, SETUP.get("memory_mib", 128) << 20),
    (resource.RLIMIT_FSIZE, 8 << 20),
    (resource.RLIMIT_NOFILE, 128),
    (resource.RLIMIT_NPROC, 48),
    (resource.RLIMIT_CORE, 0),
)
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": WORK, "LANG": "C.UTF-8", "TMPDIR": "/tmp"}  # noqa: S108 - of the guest
if SETUP.get("packages"):
    ENVIRONMENT |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
ENVIRONMENT |= dict(SETUP.get("variables", ()))
MOST_GATHERED = 200
NOT_GATHERED = ("harbor-tests", "harbor-logs", "__pycache__", ".pytest_cache")


def call(tool: str, arguments: dict[str, Any]) -> str:
    if tool != "run_command":
        raise ToolError("the tool is run_command")
    command, seconds = arguments["command"], arguments.get("timeout")
    if not isinstance(command, str) or not command.strip() or "\0" in command or len(command) > COMMAND_CHARS:
        raise ToolError(f"command is a text of 1 to {COMMAND_CHARS} characters without a NUL")
    wrong = isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= LONGEST
    if seconds is not None and wrong:
        raise ToolError(f"timeout is a number of seconds, at most {LONGEST}")
    return _run(command, seconds)


def submission() -> str:
    for command in SETUP.get("collect", ()):
        said = _run(command, None)
        if not said.endswith("[exit code 0]"):
            return json.dumps(f"verifier.collect failed: {said[-200:]}")
    names = [*SETUP["declared"], *(_gathered() if SETUP.get("gathers") else ())]
    found = {path: _submitted(path) for path in names if os.path.lexists(path)}
    if SETUP.get("gathers") or SETUP.get("changed"):
        before = {file["path"]: {"text": file["text"], "mode": file["mode"]} for file in SETUP["files"]}
        found = {path: one for path, one in found.items() if one != before.get(path)}
        judged = before if SETUP.get("gathers") else SETUP["declared"]
        found |= {path: {"problem": "removed"} for path in judged if path in before and not os.path.lexists(path)}
    return json.dumps(found)


def _gathered() -> "list[str]":
    """The files below /work that are there, but those of a test and those that are excluded."""
    found: list[str] = []
    for top in (".", "./harbor-logs/artifacts"):
        for above, folders, names in os.walk(top):
            folders[:] = sorted(name for name in folders if name not in NOT_GATHERED)
            found += [os.path.join(above, name)[2:] for name in sorted(names)]  # noqa: PTH118
    return [path for path in found if not _is_excluded(path)][:MOST_GATHERED]


def _is_excluded(path: str) -> bool:
    for folder, pattern in SETUP.get("excluded", ()):
        above = "" if folder == "." else f"{folder}/"
        inner = path[len(above) :]
        if path.startswith(above) and any(fnmatch.fnmatchcase(one, pattern) for one in (inner, *inner.split("/"))):
            return True
    return False


def _run(command: str, seconds: "float | None") -> str:
    """What the command printed, and how it ended. Without `seconds` the host alone says when it took too long."""
    with contextlib.suppress(BlockingIOError):
        os.read(OVER, 1 << 12)
    child = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=WORK,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=_confined,  # noqa: PLW1509 - this program has one thread
    )
    assert child.stdout is not None
    output, why = _read(child.stdout, seconds)
    if not why and not _ended(child):
        why = "it closed its output and went on"
    _end_all(child)
    text = output[:OUTPUT_BYTES].decode(errors="replace")
    while len(json.dumps(text, ensure_ascii=False).encode()) > ANSWER_BYTES:  # as it is sent: the end has to fit
        text = text[: len(text) * 9 // 10]
    end = why or f"exit code {child.returncode}"
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}[{end}]"


def _read(pipe: Any, seconds: "float | None") -> tuple[bytes, str]:
    """What was printed, and why no more of it is waited for; nothing where it has ended."""
    os.set_blocking(pipe.fileno(), False)
    output = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        selector.register(OVER, selectors.EVENT_READ)
        while len(output) <= OUTPUT_BYTES:
            begun = time.monotonic()
            ready = {key.fd for key, _ in selector.select(None if seconds is None else NAP_SECONDS)}
            if seconds is not None:
                seconds -= min(time.monotonic() - begun, NAP_SECONDS)
            if OVER in ready or (seconds is not None and seconds <= 0):
                return output, "it took too long and was ended"
            if pipe.fileno() in ready:
                more = pipe.read(OUTPUT_BYTES + 1 - len(output))
                if not more:
                    return output, ""
                output += more
    return output, "it printed too much and was ended"


def _ended(child: Any) -> bool:
    """Whether a command that has closed its output ends as well."""
    left = CLOSED_SECONDS
    while left > 0 and child.poll() is None:
        begun = time.monotonic()
        time.sleep(NAP_SECONDS)
        left -= min(time.monotonic() - begun, NAP_SECONDS)
    return child.poll() is not None


def _end_all(child: Any) -> None:
    """Kills everything of this user but this process, and waits for what it has to bury."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    child.stdout.close()
    child.wait()
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _confined() -> None:
    for what, most in LIMITS:
        hard = resource.getrlimit(what)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))
    os.umask(0o022)


def _submitted(path: str) -> dict[str, str]:
    """The file's text and mode, or why there is none."""
    real = os.path.realpath(path)
    if real != os.path.join(WORK, path):  # noqa: PTH118
        return {"problem": "a link, or in a folder that is one"}
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        return {"problem": f"it cannot be opened: {error.strerror}"}
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode):
            return {"problem": "no regular file"}
        if about.st_size > FILE_BYTES:
            return {"problem": f"more than {FILE_BYTES} bytes"}
        data = os.read(file, FILE_BYTES + 1)
        return {"text": data.decode(), "mode": f"{about.st_mode & 0o777:03o}"}
    except UnicodeDecodeError:
        return {"problem": "no text in UTF-8"}
    finally:
        os.close(file)


def _begin() -> None:
    for folder in SETUP.get("folders", ()):
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    for file in SETUP["files"]:
        folder = os.path.dirname(file["path"])  # noqa: PTH120
        if folder:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        with open(file["path"], "w", encoding="utf-8") as opened:  # noqa: PTH123
            opened.write(file["text"])
        os.chmod(file["path"], int(file["mode"], 8))  # noqa: PTH101
    if SETUP.get("healthcheck"):
        said = _run(SETUP["healthcheck"], None)
        if not said.endswith("[exit code 0]"):
            raise RuntimeError(f"its health check fails: {said[-200:]}")


_begin()
