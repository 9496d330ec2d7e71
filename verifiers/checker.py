"""Public entry point of the verifiers: checks submissions against specs of any kind.

    with Checker() as checker:
        verdict = checker.check(AnswerSpec(expected="1/2"), "0.5")

Invariants: hostile text is parsed, and hostile code runs, in boxes of the runtime's broker and never in this process.
Without a broker (this process is not root and the settings name none), kinds that only read text run in a process that
confines itself, and each of their verdicts says so; programs and proofs get `infra_error` with a hint. Everything is
started and imported on first use, and closed together.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from runtime.errors import SandboxError
from runtime.profile import BackendName
from runtime.sandbox import SessionPool
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.boxes.box import ToolBoxes
from verifiers.boxes.conductor import Conductor
from verifiers.contract.errors import SpecError
from verifiers.contract.kinds import Kind
from verifiers.contract.protocols import ProposalReply
from verifiers.contract.verdict import ALARM, SpecProblem, Verdict, broken
from verifiers.registry import check_spec, identity, is_decided, kind_of
from verifiers.registry.spec import Spec
from verifiers.tools import programs
from verifiers.workers.service import VerifierService

if TYPE_CHECKING:
    from verifiers.contract.protocols import Judge

AT_ONCE = 4
"""Sandboxed checks that run concurrently per processor; each mostly waits for its sandbox."""
log = logging.getLogger(__name__)
T = TypeVar("T")


class _Closes(Protocol):
    def close(self) -> None: ...


def default_settings(lean: Path | None = None, lean_projects: tuple[Path, ...] = ()) -> RuntimeSettings:
    """Returns settings for use without an appliance: a private broker with its files in this user's cache folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "assay"
    own = BrokerSettings(
        state_dir=cache / "boxes",
        root_dir=cache / "guest-roots",
        backends=(BackendName.GVISOR, BackendName.NSJAIL),
        programs=programs(lean, lean_projects),
    )
    return RuntimeSettings(own=own)


class Checker:
    """Checks submissions against specs. A context manager, safe to use from several threads."""

    def __init__(
        self,
        settings: RuntimeSettings | None = None,
        *,
        sessions: SessionPool | None = None,
        judge: Judge | None = None,
        lean: Path | None = None,
        lean_projects: tuple[Path, ...] = (),
        workers: int | None = None,
        tools_backend: BackendName = BackendName.NSJAIL,
        require_kernel_floor: bool = False,
    ) -> None:
        """Configures a checker of submissions; workers and sandboxes start on first use. `settings`: a running broker,
        or the configuration of a private one; must include `verifiers.tools.programs`. `sessions`: a shared pool, which
        stays open. `judge`: for the soft items of checklists. `lean`: a toolchain folder; `lean_projects`: further
        folders with compiled files. `workers`: texts that are decided concurrently. `tools_backend`: the sandbox
        backend of our own tools. `require_kernel_floor`: proofs count only from a Lean kernel without known holes."""
        self._settings, self._given_sessions, self.judge = settings, sessions, judge
        self.lean, self.lean_projects = lean, lean_projects
        self.workers = workers or len(os.sched_getaffinity(0))
        self._tools_backend, self.require_kernel_floor = tools_backend, require_kernel_floor
        self.on_checked: Callable[[int, int], object] = lambda done, count: None
        """Receives, after each sandboxed check of `check_many`, how many of how many are done."""
        self.on_alarm: Callable[[str], object] = log.error
        """Receives the alarm of a sandboxed check, if its verdict has one."""
        self._lock = threading.RLock()
        self._made: dict[str, _Closes] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def check(self, spec: Spec, submission: str, seconds: float | None = None) -> Verdict:
        """Returns the verdict on one submission. Raises only SpecError, with a hint, for an unusable spec."""
        found = self.check_many([(spec, submission)], seconds)[0]
        if isinstance(found, SpecProblem):
            raise SpecError(found.message, hint=found.hint)
        return found

    def check_many(
        self, pairs: Sequence[tuple[Spec, str]], seconds: float | None = None
    ) -> list[Verdict | SpecProblem]:
        """Returns, in order, a verdict for each pair, or the problem with its spec. Never raises for a pair. `seconds`
        limits the CPU time of one pair; the default is that of its kind."""
        decided: dict[float, list[int]] = {}
        conducted: dict[int, Future[Verdict | SpecProblem]] = {}
        results: dict[int, Verdict | SpecProblem] = {}
        for place, (spec, submission) in enumerate(pairs):
            limit = seconds if seconds is not None else kind_of(spec).seconds
            if is_decided(spec):  # the worker checks these specs itself
                decided.setdefault(limit, []).append(place)
                continue
            try:
                check_spec(spec)
            except SpecError as error:
                results[place] = problem_of(error)
            else:
                conducted[place] = self._pool().submit(self._conduct, spec, submission, limit)
        for limit, places in decided.items():
            found = self.service().verify_many([pairs[place] for place in places], limit)
            results.update(zip(places, found, strict=True))
        for done, (place, future) in enumerate(conducted.items(), 1):
            result = results[place] = future.result()
            if isinstance(result, Verdict) and isinstance(alarm := result.evidence.get(ALARM), str):
                self.on_alarm(alarm)
            self.on_checked(done, len(conducted))
        return [results[place] for place in range(len(pairs))]

    def propose(self, spec: Spec, way: str, question: str, seconds: float) -> ProposalReply:
        """Runs one of `verifiers.registry.ways(spec)` in the text worker and returns its proposals. Decides nothing.
        Raises InfrastructureError if the worker broke."""
        return self.service().propose(spec, way, question, seconds)

    def start(self) -> None:
        """Starts the text worker in the background, so that its first check is fast."""
        self.service().start()

    def close(self) -> None:
        """Closes the workers, sandboxes and broker that this checker started. Closing twice is fine."""
        with self._lock:
            self._closed = True
            made, self._made = list(self._made.values()), {}
            threads, self._threads = self._threads, None
        for part in reversed(made):
            part.close()
        if threads is not None:
            threads.shutdown(cancel_futures=True)

    def _conduct(self, spec: Spec, submission: str, seconds: float) -> Verdict | SpecProblem:
        try:
            return self._conductor(kind_of(spec)).verify(spec, submission, seconds)
        except SpecError as error:
            return problem_of(error)
        except SandboxError as error:
            hint = f" ({error.hint})" if error.hint else ""
            return broken(*identity(spec), f"{error}{hint}")
        except Exception as error:  # a broken verifier is our fault and affects one item only
            log.exception("the %s verifier broke", spec.kind)
            return broken(*identity(spec), f"the verifier broke: {type(error).__name__}")

    # parts, made on first use

    def _part(self, name: str, make: Callable[[], T]) -> T:
        with self._lock:
            if self._closed:
                raise ValueError("this checker is closed")
            found = self._made.get(name)
            if found is None:
                found = self._made[name] = make()  # type: ignore[assignment]
            return found  # type: ignore[return-value]

    def _conductor(self, kind: Kind) -> Conductor:
        if kind.conductor is None:
            raise SpecError(f"{kind.name} needs no sandbox")
        make: Callable[[Checker], Conductor] = kind.conductor.load()
        return self._part(kind.name, lambda: make(self))

    def _known_settings(self) -> RuntimeSettings:
        with self._lock:
            if self._settings is None:
                self._settings = default_settings(self.lean, self.lean_projects)
            return self._settings

    @property
    def isolation(self) -> str:
        """Name of the sandbox backend of the sessions, as verdicts give it."""
        return self._known_settings().backend.value

    def boxes(self) -> ToolBoxes:
        """Returns the starter of sandboxes for our own tools."""
        return self._part("boxes", lambda: ToolBoxes(self._known_settings(), self._tools_backend))

    def sessions(self) -> SessionPool:
        """Returns the pool of sandboxes for submitted code: the shared one if it was passed in, else a private one."""
        from runtime.sessions import Sessions

        return self._given_sessions or self._part("sessions", lambda: Sessions(self._known_settings()))

    def service(self) -> VerifierService:
        """Returns the worker service that verifies submissions from their text alone."""
        boxes = self.boxes() if self._may_have_boxes() else None
        return self._part("service", lambda: VerifierService(boxes=boxes, workers=self.workers, or_process=True))

    def _may_have_boxes(self) -> bool:
        return os.geteuid() == 0 or (self._settings is not None and self._settings.broker is not None)

    def _pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._closed:
                raise ValueError("this checker is closed")
            if self._threads is None:
                self._threads = ThreadPoolExecutor(AT_ONCE * self.workers, thread_name_prefix="checker")
            return self._threads


def problem_of(error: SpecError) -> SpecProblem:
    """Converts a SpecError into a SpecProblem, which a batch returns in place of a verdict."""
    return SpecProblem(message=str(error), hint=error.hint)
