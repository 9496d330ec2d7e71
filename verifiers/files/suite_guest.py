"""Runs a repository's tests in a sandbox and writes down the values that they observe: the guest's program.

This file is source for a sandbox; it needs Python and pytest alone. What always holds: nothing in here knows which
values are right. Tests were rewritten so that they hand over what they would compare (`seen`, `truth`), and the host
compares the digests. So code under test that reaches this process, its frames or its output gains nothing by it: a
forged result needs the right values. `used` reads sources and never runs them.
"""

import ast
import hashlib
import json
import os
import re
import resource
import signal
import sys
import time
from typing import Any

NAMES = """
    pytest _pytest unittest doctest conftest sitecustomize usercustomize pluggy inspect gc ctypes builtins
    __builtins__ _getframe _getframemodulename _current_frames settrace setprofile addaudithook _exit meta_path
    path_hooks modules f_locals f_globals f_code f_back tb_frame tb_next gi_frame cr_frame ag_frame co_consts
    __file__ open read_text read_bytes listdir scandir walk glob rglob iterdir vars globals locals __dict__
    attrgetter __getattribute__ __traceback__ __import__ importlib import_module exec eval runpy atexit faulthandler
    __subclasses__ SkipTest fork execv execve dup2 kill abort trace getsource linecache tarfile zipimport stack
    environ currentframe walk_stack __assay_seen__ __assay_truth__ __assay_kind__ __assay_raised__
"""
WATCHED = frozenset(NAMES.split())
"""Names that reach the tests, the interpreter or other processes. A submission may use those that were there before."""
WATCHED_TEXT = re.compile(r"/proc/|PYTEST|(^|/)(conftest|sitecustomize|test_\w+|tests?/\S+)\.?(py)?$|\.pth$")
TEXT, DIGITS, DEPTH, ITEMS = 2_000, 12, 12, 5_000
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def used(source: str) -> list[str]:
    """The watched names and texts in a Python source, sorted; a source that does not parse uses none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: set[str] = set()
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Name):
            names = [node.id]
        elif isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [part for alias in node.names for part in alias.name.split(".")]
            names += (getattr(node, "module", None) or "").split(".")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            names = [text] if text in WATCHED else []
            found |= {"a text that names tests or processes"} if WATCHED_TEXT.search(text[:TEXT]) else set()
        found |= WATCHED.intersection(names)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "setattr"):
            found |= (
                {"a computed attribute"} if not all(isinstance(one, ast.Constant) for one in node.args[1:2]) else set()
            )
    return sorted(found)


def canonical(value: Any, digits: int = DIGITS, depth: int = DEPTH) -> str:
    """The value as text, the same for equal plain values, whatever their class says of itself."""
    kind = type(value)
    if value is None or depth <= 0:
        return "none" if value is None else "deep"
    if issubclass(kind, int):
        return f"n:{int.__add__(value, 0)}"
    if issubclass(kind, float):
        number = float.__add__(value, 0.0)
        return f"n:{int(number)}" if float.is_integer(number) and abs(number) < 1e15 else f"n:{number:.{digits}g}"
    if issubclass(kind, str):
        return "s:" + str.encode(value, "utf-8", "backslashreplace").decode()
    if issubclass(kind, bytes | bytearray):
        return f"b:{bytes.hex(bytes(value))}"
    if issubclass(kind, list | tuple | set | frozenset):
        base = next(one for one in (list, tuple, set, frozenset) if issubclass(kind, one))
        inner = [canonical(one, digits, depth - 1) for _, one in zip(range(ITEMS), base.__iter__(value), strict=False)]
        ordered = inner if base in (list, tuple) else sorted(inner)
        return ("l" if base is list else "t" if base is tuple else "e") + f"({len(ordered)};" + ";".join(ordered) + ")"
    if issubclass(kind, dict):
        pairs = [f"{canonical(k, digits, depth - 1)}={canonical(v, digits, depth - 1)}" for k, v in dict.items(value)]
        return f"d({len(pairs)};" + ";".join(sorted(pairs)) + ")"
    return f"o:{kind.__name__}:{_shown(value)}"


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - the code under test raises it
        return f"no repr: {type(error).__name__}"
    return ADDRESS.sub("0x", text if type(text) is str else "")[:TEXT]


SEEN: list[tuple[int, str, str]] = []
"""Observations of the running test: site, canonical value, text for people."""
TELLS = False


CALLED: set[str] = set()
"""Functions of the repository that the running test has called: `path module.Class.function`."""


CLOCKS = frozenset({"datetime.now", "datetime.utcnow", "datetime.today", "date.today"})
CLOCK = "clock"


def called(frame: Any, event: str, argument: Any) -> None:
    """Profiler that notes functions of the repository, those that a fault in them can be seen by, and whether one reads
    a clock or waits."""
    code = frame.f_code
    if not code.co_filename.startswith(HOME):
        return
    if event == "call":
        CALLED.add(f"{code.co_filename[len(HOME) :]} {code.co_qualname.partition('.<locals>')[0]}")
    where, name = getattr(argument, "__module__", ""), getattr(argument, "__qualname__", "")
    if event == "c_call" and (where == "time" or name in CLOCKS):
        CALLED.add(CLOCK)


HOME = ""


def seen(site: int, value: Any, digits: int = DIGITS) -> Any:
    SEEN.append((site, canonical(value, digits), _shown(value)[:400] if TELLS else ""))
    return value


def truth(site: int, value: Any) -> Any:
    holds = bool(value)
    SEEN.append((site, f"truth:{holds}", str(holds)))
    return value


def kind(site: int, value: Any) -> Any:
    plain = type(value).__module__ == "builtins"
    SEEN.append((site, "plain" if plain else f"kind:{type(value).__name__}", ""))
    return value


class raised:  # noqa: N801 - tests use it like a function
    """Context manager around one that expects an exception: writes down whether that was raised."""

    def __init__(self, site: int, inner: Any) -> None:
        self.site, self.inner = site, inner

    def __enter__(self) -> Any:
        return self.inner.__enter__()

    def __exit__(self, *error: Any) -> Any:
        SEEN.append((self.site, "exit", error[0].__name__ if error[0] else "nothing"))
        suppressed = self.inner.__exit__(*error)
        SEEN[-1] = (self.site, f"raised:{bool(suppressed)}", SEEN[-1][2])
        return suppressed


class Watch:
    """Plugin of pytest that writes one line for each test: id, outcome, digest; with `tells` its values too."""

    def __init__(self, out: Any, wanted: "set[str] | None", tells: Any) -> None:
        self.out, self.wanted, self.tells = out, wanted, tells
        self.outcome, self.why, self.params, self.begun = "passed", "", "", 0.0

    def pytest_runtest_protocol(self, item: Any) -> None:
        CALLED.clear()
        if self.tells == "calls":
            sys.setprofile(called)

    def pytest_collection_finish(self) -> None:
        if self.tells == "calls":
            self.out.write(json.dumps(["", "imports", "", [], "", "", 0.0, sorted(CALLED)]) + "\n")

    def pytest_collection_modifyitems(self, items: "list[Any]") -> None:
        if self.wanted is not None:
            items[:] = [item for item in items if item.nodeid in self.wanted]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        SEEN.clear()
        self.outcome, self.why, self.params, self.begun = "passed", "", "", time.process_time()

    def pytest_runtest_setup(self, item: Any) -> None:
        if self.tells and hasattr(item, "callspec"):
            self.params = ", ".join(f"{name} = {_shown(one)[:200]}" for name, one in item.callspec.params.items())

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.outcome != "passed" or hasattr(report, "wasxfail"):
            self.outcome = f"{report.when} {report.outcome}"
            crash = getattr(getattr(report, "longrepr", None), "reprcrash", None)
            self.why = self.why or str(getattr(crash, "message", ""))[:600]

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        digest = hashlib.sha256(json.dumps([one[:2] for one in SEEN]).encode()).hexdigest()[:16]
        line: list[Any] = [nodeid, self.outcome, digest]
        if self.tells:
            line += [[[site, text[:400], shown] for site, text, shown in SEEN[:200]], self.why, self.params]
            line += [time.process_time() - self.begun, sorted(CALLED)]
            sys.setprofile(None)
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()


def run(asked: "dict[str, Any]", result: str) -> None:
    """Runs the tests in this process; each is a line of the file `result`."""
    global TELLS, HOME
    import builtins

    import pytest

    TELLS, HOME = bool(asked["tells"]), f"{os.getcwd()}/"  # noqa: PTH109
    for name, one in (("seen", seen), ("truth", truth), ("kind", kind), ("raised", raised)):
        setattr(builtins, f"__assay_{name}__", one)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    sys.path[:0] = [os.path.abspath(path) for path in asked["path"]]  # noqa: PTH100
    sys.dont_write_bytecode = True
    wanted = None if asked["tests"] is None else set(asked["tests"])
    files = sorted({one.partition("::")[0] for one in wanted}) if wanted else asked["files"]
    options = "-q --tb=short -p no:cacheprovider -p no:randomly -p no:xdist -p no:cov -o addopts= --basetemp=/tmp/tests"
    with open(result, "w", encoding="utf-8") as out:  # noqa: PTH123
        if asked["tells"] == "calls":
            sys.setprofile(called)  # what is called while modules are imported concerns all tests
        pytest.main([*options.split(), "--continue-on-collection-errors", *files], [Watch(out, wanted, asked["tells"])])


def batch(asked: "dict[str, Any]", result: str) -> None:
    """Runs the tests on each variant of some files, each in a process of its own; keeps the lines that differ."""
    import pytest  # noqa: F401 - loaded once, before the forks

    known = asked["known"]
    with open(result, "w", encoding="utf-8") as out:  # noqa: PTH123
        for files, tests in asked["variants"]:
            before = {path: open(path, encoding="utf-8", newline="").read() for path in files}  # noqa: PTH123, SIM115
            _write(files)
            lines = _forked(asked | {"tests": tests}, f"{result}.one")
            _write(before)
            differ = None if lines is None else [one[:7] for one in lines if known.get(one[0]) != one[1:3]]
            out.write(json.dumps(differ) + "\n")
            out.flush()


def _forked(asked: "dict[str, Any]", result: str) -> "list[Any] | None":
    """The lines of a run in a child; None if it was killed, ran out of time or left tests out."""
    child = os.fork()
    if not child:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (asked["cpu"], asked["cpu"]))
            resource.setrlimit(resource.RLIMIT_AS, (asked["memory_mib"] << 20,) * 2)
            run(asked, result)
        finally:
            os._exit(0)
    end = time.monotonic() + asked["seconds"]
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.005)
    try:
        with open(result, encoding="utf-8") as found:  # noqa: PTH123
            lines = [json.loads(line) for line in found]
        os.unlink(result)  # noqa: PTH108
    except (OSError, ValueError):
        return None
    return lines if len(lines) == len(asked["tests"]) else None


def _write(files: "dict[str, str]") -> None:
    for path, text in files.items():
        with open(path, "w", encoding="utf-8", newline="") as file:  # noqa: PTH123
            file.write(text)


if __name__ == "__main__":
    task = json.load(sys.stdin)
    if task["what"] == "used":
        texts = [open(path, encoding="utf-8").read() for path in task["files"]]  # noqa: PTH123, SIM115
        print(json.dumps(sorted({name for text in texts for name in used(text)})))
    else:
        {"run": run, "batch": batch}[task["what"]](task, sys.argv[1])
