"""Isolation checks of `assay doctor`: the broker, each backend of the policy, a sandbox, and the self-test.

Invariants: a running broker of the data folder is used; otherwise all work happens in a temporary folder, so that
running work is not disturbed. Faults that keep model code from running fail; faults in confining the verifiers' tools
warn.
"""

from __future__ import annotations

import platform
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from appliance.cli.machine.doctor_checks import CheckGrade, DoctorCheck, failed, ok, undecided, warning
from appliance.config.configuration import Settings
from appliance.config.places import broker_socket, runtime_settings
from appliance.text.printable import printable
from runtime.backends import describe
from runtime.broker import BrokerWelcome, ask
from runtime.conformance import LIMITS, TAKES_SNAPSHOTS, CheckOutcome, CheckResult, chosen, conform
from runtime.conformance import ConformanceCheck as Conformance
from runtime.errors import BusyError, RefusedError, SandboxError
from runtime.profile import BackendName
from runtime.sandbox import CallResult, CallStatus
from runtime.sessions import Sessions
from runtime.settings import RuntimeSettings

PACKAGES = ("numpy", "scipy", "sympy", "mpmath")
BROKER_LOGS = "see `systemctl status assay-broker` and `assay logs broker`"
GVISOR_RIGHTS = "in a container allow ptrace, mount and namespaces; if not root, run the broker as root"
UNSAFE = "until it passes no model code may run: use another runsc or host"
SEEN = 200
"""Characters shown of a failed self-test's observation."""
FIND_PACKAGES = f"""
import importlib.metadata, importlib.util
for name in {PACKAGES!r}:
    if importlib.util.find_spec(name) is not None:
        try:
            print(name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            print(name)
"""


PATIENCE = 40.0
"""Wall-clock limit of a call as a multiple of its own time: a busy machine is slow, not broken."""


def isolation(settings: Settings, *, selftest: bool) -> Iterator[DoctorCheck]:
    """Yields the doctor's checks of broker, sandbox backends, sandboxes and self-test. Raises PolicyError."""
    runtime = runtime_settings(settings, settings.data)
    try:
        running = _running(broker_socket(settings, settings.data), configured=settings.sandbox.broker is not None)
    except BusyError as error:
        yield undecided("broker", str(error))
        return
    except RefusedError as error:
        yield failed("broker", str(error), f"{error.hint.rstrip('.')}; {BROKER_LOGS}")
        return
    if running is not None:
        runtime = runtime.model_copy(update={"broker": broker_socket(settings, settings.data)})
        yield ok("broker", f"pid {running.pid} at {runtime.broker}")
    else:
        yield ok("broker", "none is running; the next checks start their own")
    backends = [backend(name, runtime, running) for name in runtime.own.backends]
    yield from backends
    yield ok("cgroups", f"version {_cgroup_version()} on Linux {platform.release()}")
    if any(check.grade is CheckGrade.FAILED for check in backends):
        return
    with _apart(runtime) as own:
        seen = list(sandbox(own))
        yield from seen
        if selftest and seen[0].grade is CheckGrade.OK:
            for name in own.own.backends:
                yield self_test(own.model_copy(update={"backend": name}), chosen(quick=True), name is own.backend)


def backend(name: BackendName, runtime: RuntimeSettings, running: BrokerWelcome | None) -> DoctorCheck:
    """Checks a sandbox backend: as reported by a running broker, else tested in this process."""
    can = "takes snapshots" if TAKES_SNAPSHOTS[name] else "takes no snapshots, and shares the host's kernel"
    for_models = name is runtime.backend
    use = "model code" if for_models else "the verifiers' tools"
    if running is not None:
        version, problem = running.backends.get(name.value, ""), "the broker lacks it"
        hint, works = f"{BROKER_LOGS}, fix the cause and restart it", name.value in running.backends
    else:
        works, version, problem, hint = describe(name, runtime.own)
        if name is BackendName.GVISOR:
            hint = f"{hint.rstrip('.')}; {GVISOR_RIGHTS}"
    if works:
        return ok(name.value, f"{version}; {can}; for {use}")
    if for_models:
        return failed(name.value, f"{problem}; the policy uses it for {use}", hint)
    return warning(name.value, f"{problem}; the policy uses it for {use}", hint)


def sandbox(runtime: RuntimeSettings) -> Iterator[DoctorCheck]:
    """Starts, uses and removes a sandbox. Yields a check with its times, and one with its importable packages."""
    try:
        with Sessions(runtime) as pool:
            started = time.monotonic()
            box = pool.sandbox(caller="doctor")
            try:
                result = box.run("print(6 * 7)", patience=PATIENCE)
                first = time.monotonic() - started
                warm = box.run("print(6 * 7)", patience=PATIENCE)
                inside = box.run(FIND_PACKAGES, seconds=runtime.limits.call_seconds, patience=PATIENCE)
            finally:
                box.close()
    except SandboxError as error:
        yield failed("sandbox", str(error), error.hint)
        return
    if _is_starved(result, runtime.limits.call_seconds):
        yield undecided("sandbox", f"no answer within {result.seconds:.0f} s, most of them without a CPU")
        return
    if result.status is not CallStatus.OK or result.output.strip() != "42":
        yield failed("sandbox", f"answered {result.status} {result.error}", "run install.sh again for another runsc")
        return
    yield ok("sandbox", f"first answer after {first:.2f} s, the next in {1000 * warm.seconds:.2f} ms")
    if inside.status is CallStatus.TIMEOUT:
        yield undecided("packages", f"not looked at: no answer within {inside.seconds:.0f} s")
        return
    if inside.status is not CallStatus.OK:
        yield warning("packages", f"not looked at: {inside.status} {inside.error}", "run `assay doctor` again")
        return
    packages = ", ".join(line.strip() for line in inside.output.splitlines()[: len(PACKAGES)])
    if packages:
        yield ok("packages", f"inside: {packages}")
    else:
        yield warning("packages", "inside: only the standard library", "run install.sh again to build them")


def _is_starved(result: CallResult, seconds: float) -> bool:
    """True if a call's wall clock ran out before its own time."""
    return result.status is CallStatus.TIMEOUT and result.seconds - result.waited < seconds


def self_test(runtime: RuntimeSettings, wanted: Iterable[Conformance], for_models: bool) -> DoctorCheck:
    """Runs part of the sandbox conformance suite, under the limits that it is written for."""
    name = f"{runtime.backend.value} self-test"
    started = time.monotonic()
    try:
        with Sessions(runtime.model_copy(update={"limits": LIMITS})) as pool:
            results = list(conform(pool, runtime.backend, wanted))
    except SandboxError as error:
        return failed(name, str(error), error.hint)
    counts = Counter(result.outcome for result in results)
    counted = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in CheckOutcome if counts[outcome])
    figure = f"{counted}, in {time.monotonic() - started:.0f} s"
    if not counts[CheckOutcome.FAIL]:
        return ok(name, figure)
    advice = f"{_failures(results)}; run `assay sandbox selftest --backend {runtime.backend.value}`"
    return failed(name, figure, f"{advice}; {UNSAFE}") if for_models else warning(name, figure, advice)


def _failures(results: list[CheckResult]) -> str:
    """Lists failed conformance checks with their observations, which may not recur."""
    failed = [result for result in results if result.outcome is CheckOutcome.FAIL]
    return "; ".join(f"{result.name}: {printable(result.detail, limit=SEEN)}" for result in failed)


def _running(socket: Path, *, configured: bool) -> BrokerWelcome | None:
    """Returns the running broker's greeting, or None. Raises RefusedError if a configured or present broker does not
    answer."""
    if not configured and not socket.exists():
        return None
    try:
        return ask(socket)
    except RefusedError:
        if configured or _listens(socket):
            raise
        return None  # the socket of one that was killed


def _listens(socket: Path) -> bool:
    """True if the kernel has a listener on that socket (proc_net_unix(5): flags 00010000)."""
    lines = Path("/proc/net/unix").read_text().splitlines()[1:]
    return any(line.split()[3] == "00010000" and line.endswith(f" {socket}") for line in lines)


def _cgroup_version() -> int:
    return 2 if Path("/sys/fs/cgroup/cgroup.controllers").exists() else 1


@contextmanager
def _apart(runtime: RuntimeSettings) -> Iterator[RuntimeSettings]:
    """Yields settings with temporary folders for a private broker, removed afterwards; an existing guest root is
    reused. A configured broker's settings stay unchanged."""
    if runtime.broker is not None:
        yield runtime
        return
    with tempfile.TemporaryDirectory(prefix="assay-doctor-") as name:
        folder = Path(name)
        there = runtime.own.root_dir
        own = runtime.own.model_copy(
            update={
                "state_dir": folder / "state",
                "root_dir": there if there.exists() else folder / "roots",
                "snapshot_dir": folder / "snapshots",
                "ready": 1,
            }
        )
        yield runtime.model_copy(update={"own": own})
