"""One run of Lean inside a box, in a process forked for it. `server` is the program."""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from verifiers.boxes.own_time import PATIENCE, computed_by, is_over
from verifiers.lean.declarations import examine
from verifiers.lean.export import export
from verifiers.lean.native import BREAKING, LeanRefused, replay
from verifiers.lean.objects import AlteredError
from verifiers.lean.olean import Olean, OleanError
from verifiers.lean.second import command
from verifiers.lean.warm import NotWarm, Warm

KEPT_OUTPUT = 256 << 10
"""Bytes kept of each stream; the rest is read and dropped."""
MOST_OUTPUT = 64 << 20
"""Maximum bytes of both streams; a process that writes more is killed."""
MOST_FILE = 512 << 20
MOST_SENT = 32 << 20
"""Maximum size in bytes of a compiled file for the check: it must fit into a message beside the statement's."""
MOST_NAME = 1_000
"""Maximum length of a reported declared name, in characters."""
LEAST_WALL = 60.0
"""Minimum wall-clock limit of a step, in seconds, however short its own limit: boxes yield CPU for the first ten."""
LOOK_SECONDS = 0.02
PAGE_MIB = resource.getpagesize() / 2**20
PR_SET_PDEATHSIG = 1
REPLAY_TOOL = "ASSAY_LEAN_REPLAY"
"""Environment variable with the path of the toolchain's own replay program, if it has one."""
KERNEL = "ASSAY_LEAN_KERNEL"
"""Environment variable with the path of the second kernel, if there is one."""
UNREADABLE, COLD, ALTERED = 71, 72, 73
NO_END = {UNREADABLE: "unreadable", COLD: "cold", ALTERED: "altered"}
"""Outcome of a step that did not reach Lean, by the exit code of its process."""
RESERVED = frozenset(
    [f"Nat.{name}" for name in (
        "zero", "succ", "add", "sub", "mul", "div", "mod", "gcd", "pow", "log2", "beq", "ble", "land", "lor", "xor",
        "shiftLeft", "shiftRight", "pred", "decEq", "decLt", "decLe",
    )]
    + ["Bool.true", "Bool.false", "String.ofList", "String.mk", "Char.ofNat", "Char.mk", "List.nil", "List.cons"]
    + ["Eq.refl", "Quot", "Quot.mk", "Quot.lift", "Quot.ind", "Quot.sound", "propext", "Classical.choice", "sorryAx"]
    + ["Lean.reduceBool", "Lean.reduceNat", "Lean.ofReduceBool", "Lean.ofReduceNat", "Lean.trustCompiler", "Eq", "HEq"]
)  # fmt: skip
"""Names with a meaning for the kernel or the list of axioms. Lean's own library declares them, so no submission can; if
a library lacks one, the kernel would compute with a submission's definition as if it were Lean's."""


class Lean:
    """Lean's shared library, loaded. `warm` is true once Lean is also initialized; all forks share that."""

    def __init__(self, library: str) -> None:
        self.library = ctypes.CDLL(library, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
        self.library.lean_main.restype = ctypes.c_int
        self.warm = False
        self.replays = ""
        """Kind of replay that `prove_replay` found: `library`, `tool`, or empty."""
        self.form: tuple[int, bool] | None = None
        """Form of its compiled files; known once one was read (`controls.probe`)."""
        self.plain = b""
        """A compiled file that imported nothing by name; empty until `controls.prove_headers`."""
        self.tool = os.environ.get(REPLAY_TOOL, "")
        self.kernel = os.environ.get(KERNEL, "")

    def set_up(self) -> None:
        """Initializes Lean. Success shows only in a step: some versions cannot be initialized before a fork."""
        with contextlib.suppress(AttributeError):
            self.library.lean_initialize()
            self.warm = True

    def main(self, arguments: Sequence[str]) -> int:
        argv = [b"lean", *(argument.encode() for argument in arguments)]
        return int(self.library.lean_main(len(argv), (ctypes.c_char_p * (len(argv) + 1))(*argv, None)))


class LeanStep:
    """One run of Lean in its own process.

    The answer's `ended` is `exited` (with `code`), `signal` (with `code`), `timeout`, `memory`, `output`, `unreadable`
    if a file could not be stripped, `altered` if Lean did not write it, or `cold` if a header's environment cannot be
    used. Its `seconds` count its own time (`verifiers.boxes.own_time`).
    """

    def __init__(
        self, lean: Lean, message: dict[str, Any], *, warm: Warm | None = None, spared: Collection[int] = ()
    ) -> None:
        """Prepares a run of Lean in a new temporary folder. `warm` has the imports of a source without import lines.
        `spared` are child processes that must survive this step."""
        self._lean = lean
        self._message = message
        self._warm = warm
        self._spared = spared
        self._folder = Path(tempfile.mkdtemp(prefix="step-"))
        self._texts: dict[int, bytearray] = {}
        self._written = 0

    def run(self) -> dict[str, Any]:
        began = time.monotonic()
        try:
            ended, code, usage, peak = self._conduct(began)
            answer: dict[str, Any] = {
                "ended": ended,
                "code": code,
                "seconds": round(time.monotonic() - began, 4),
                "cpu": round(usage.ru_utime + usage.ru_stime, 4),
                "peak_mib": round(peak or usage.ru_maxrss / 1024, 1),
            }
            out, err, notes = (bytes(text) for text in self._texts.values())
            answer |= {"out": out.decode("utf-8", "replace"), "err": err.decode("utf-8", "replace")}
            answer |= json.loads(notes) if notes else {}
            if self._replays == "tool" and ended == "exited":
                output = (answer["out"] + answer["err"]).strip()[:2000]
                answer |= {"code": 0, "replayed": "yes" if code == 0 else output or f"it ended with {code}"}
            return answer | self._compiled_file(ended)
        finally:
            end_children(self._spared)
            shutil.rmtree(self._folder, ignore_errors=True)

    def _conduct(self, began: float) -> tuple[str, int, resource.struct_rusage, float]:
        pipes = [os.pipe() for _ in range(3)]
        child = os.fork()
        if child == 0:
            self._child([write for _, write in pipes])
        for _, write in pipes:
            os.close(write)
        self._texts = {read: bytearray() for read, _ in pipes}
        try:
            ended, peak = self._watch(child, began)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
            for read in self._texts:
                os.close(read)
        code = os.waitstatus_to_exitcode(status)
        if ended == "exited" and code < 0:
            return "signal", -code, usage, peak
        if ended == "exited" and code in NO_END:
            return NO_END[code], code, usage, peak
        return ended, code, usage, peak

    def _watch(self, child: int, began: float) -> tuple[str, float]:
        """Reads Lean's output until all pipes are closed and it has exited. Returns how it ended and its peak MiB."""
        poll = select.poll()
        waiting, peak, limit = set(self._texts), 0.0, float(self._message["memory_mib"])
        seconds = float(self._message["seconds"])
        for read in waiting:
            poll.register(read, select.POLLIN)

        def take(milliseconds: float) -> bool:
            """Reads the output that arrives within the time. Returns True if there was data or end of file."""
            events = poll.poll(milliseconds)
            for descriptor, _ in events:
                if not self._read(descriptor):
                    waiting.discard(descriptor)
                    poll.unregister(descriptor)
            return bool(events)

        while True:
            some = take(LOOK_SECONDS * 1000 if waiting else 1)
            if not (some and waiting) and _is_over(child):
                while waiting and take(0):
                    pass  # its last output
                return "exited", peak
            if self._written > MOST_OUTPUT:
                return "output", peak
            if is_over(computed_by(child), time.monotonic() - began, seconds, LEAST_WALL):
                return "timeout", peak
            if not some:
                peak = max(peak, resident(child))
                if peak > limit:
                    return "memory", peak

    def _read(self, descriptor: int) -> bool:
        data = os.read(descriptor, 1 << 16)
        buffer = self._texts[descriptor]
        buffer += data[: max(0, KEPT_OUTPUT - len(buffer))]
        self._written += len(data)
        return bool(data)

    def _child(self, writes: Sequence[int]) -> None:
        """Runs Lean in the forked process; never returns."""
        code = 70
        try:
            os.setsid()
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.dup2(writes[0], 1)
            os.dup2(writes[1], 2)
            notes = os.fdopen(os.dup(writes[2]), "w")
            os.closerange(3, notes.fileno())
            os.closerange(notes.fileno() + 1, 1024)
            os.chdir(self._folder)
            lower_limit(resource.RLIMIT_CORE, 0)
            lower_limit(resource.RLIMIT_FSIZE, MOST_FILE)
            os.environ["LEAN_PATH"] = f"{self._folder}:{os.environ.get('LEAN_PATH', '')}"
            with notes:  # closed before anything of the submission runs
                facts = self._lay_out()
                if self._replays == "library":
                    facts["replayed"] = self._replay()
                if self._warm is not None:
                    facts |= self._warm.prepare(self._folder, self._message)
                kernel = self._exported()
                notes.write(json.dumps(facts | ({"exported": True} if kernel else {})))
            if kernel:
                os.execv(kernel[0], kernel)  # noqa: S606 - the owner's
            if self._replays == "tool":
                module = self._message["replay"].removesuffix(".olean")
                os.execve(self._lean.tool, [self._lean.tool, module], os.environ | {BREAKING: "1"})  # noqa: S606 - Lean's own
            if self._warm is not None:
                code = self._warm.elaborate(self._folder, self._message)
            else:
                code = 0 if self._replays else self._lean.main(self._arguments()) & 0xFF
        except (NotWarm, OleanError) as error:
            os.write(2, f"{error}\n".encode())
            code = COLD if isinstance(error, NotWarm) else ALTERED if isinstance(error, AlteredError) else UNREADABLE
        except BaseException as error:  # noqa: BLE001 - a fork of the server must end here
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(code)

    @property
    def _replays(self) -> str:
        return self._lean.replays if "replay" in self._message else ""

    def _replay(self) -> str:
        """Checks a compiled file's declarations again with the kernel. Returns `yes`, or the kernel's objection."""
        if not self._lean.warm:
            self._lean.set_up()
        try:
            replay(self._lean.library, self._folder / self._message["replay"])
        except LeanRefused as error:
            return str(error)[:2000] or "no"
        return "yes"

    def _exported(self) -> list[str]:
        """Writes the export that a step asks for. Returns the second kernel's command line, empty without an export."""
        if "export" not in self._message:
            return []
        if not self._lean.warm:
            self._lean.set_up()
        module, name, version = (self._message.get(key, "") for key in ("module", "export", "lean"))
        return command(self._lean.kernel, export(self._lean.library, self._folder, module, name, version))

    def _lay_out(self) -> dict[str, Any]:
        bare, wanted = self._message.get("bare", ()), self._message.get("wanted")
        facts: dict[str, Any] = {}
        for name, text in self._message.get("files", {}).items():
            data = base64.b64decode(text)
            if name in bare:
                olean = Olean(data)
                names = olean.names()
                facts = {
                    "declared": len(names),
                    "has": wanted in names,
                    "axioms": [name[:MOST_NAME] for name in olean.axioms()[:10]],
                    "reserved": sorted(RESERVED.intersection(names)),
                    "alike": [name[:MOST_NAME] for name in names if _last(name) == _last(wanted or "")][:5],
                }
                data = olean.without_entries(examine(olean, self._message.get("modules"), self._lean.form))
            (self._folder / name).write_bytes(data)
        (self._folder / f"{self._message['module']}.lean").write_text(self._message.get("source", ""), encoding="utf-8")
        return facts

    def _arguments(self) -> list[str]:
        module = self._message["module"]
        output = ["-o", f"{module}.olean"] if self._message.get("keep") else []
        return ["--json", "-j1", *self._message.get("options", ()), "-R", ".", *output, f"{module}.lean"]

    def _compiled_file(self, ended: str) -> dict[str, Any]:
        path = self._folder / f"{self._message['module']}.olean"
        if ended != "exited" or not self._message.get("keep") or path.is_symlink() or not path.is_file():
            return {}
        if path.stat().st_size > MOST_SENT:
            return {"ended": "output"}
        return {"file": base64.b64encode(path.read_bytes()).decode()}


def wall_limit(message: dict[str, Any]) -> float:
    """Returns the wall-clock limit of a Lean step in seconds, regardless of its CPU time."""
    return max(PATIENCE * float(message["seconds"]), LEAST_WALL)


def lower_limit(limit: int, value: int) -> None:
    _, hard = resource.getrlimit(limit)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (value, value))


def end_children(spared: Collection[int] = ()) -> None:
    """Kills all remaining processes of a Lean step: orphans become our children."""
    for _ in range(100):
        try:
            found, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if found == 0:
            ended = [child for child in _children() if child not in spared]
            for child in ended:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            if not ended:
                return
            time.sleep(0.005)


def _is_over(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _children() -> Iterable[int]:
    own = os.getpid()
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                if int((path / "stat").read_text().rsplit(")", 1)[1].split()[1]) == own:
                    yield int(path.name)


def resident(process: int) -> float:
    """Returns a process's private memory in MiB: mapped files, like Mathlib's, do not count."""
    try:
        _, resident, shared, *_ = map(int, Path(f"/proc/{process}/statm").read_text().split())
        return (resident - shared) * PAGE_MIB
    except (OSError, IndexError, ValueError):
        return 0.0


def _last(name: str) -> str:
    return name.rsplit(".", 1)[-1]
