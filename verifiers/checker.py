"""The one door: a spec of any kind and a submission go in, a verdict comes out.

    with Checker() as checker:
        verdict = checker.check(AnswerSpec(expected="1/2"), "0.5")

What always holds: hostile text is read, and hostile code runs, in boxes of the runtime's broker and never in this
process. Where no broker can be had (this process is not root, and none was named), what only reads a text is decided in
a process that confines itself, and each of its verdicts says so; programs and proofs are then refused: `infra_error`,
with a hint. Nothing is started or imported before it is needed, and all of it is closed together.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from runtime.errors import SandboxError
from runtime.profile import BackendName
from runtime.sandbox import SessionPool
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers import tools
from verifiers.errors import SpecError
from verifiers.proposals.found import Found
from verifiers.registry import check_spec, identity, is_decided
from verifiers.spec import ChecklistSpec, LeanSpec, ProgramSpec, Spec
from verifiers.verdict import Ground, Outcome, Verdict
from verifiers.workers.box import ToolBoxes
from verifiers.workers.jobs import BAD_SPEC
from verifiers.workers.service import VerifierService

if TYPE_CHECKING:
    from verifiers.checklists.judge import Judge
    from verifiers.checklists.verifier import ChecklistVerifier
    from verifiers.lean.verifier import LeanVerifier
    from verifiers.programs.verifier import ProgramVerifier

SECONDS = {"lean": 60.0, "program": 60.0, "checklist": 10.0}
"""Wall clock of one item by its kind, unless somebody says otherwise; `ELSE` for all others."""
ELSE = 5.0
AT_ONCE = 4
"""Items that are conducted at once, for each processor: sandboxes are mostly waited for."""
log = logging.getLogger(__name__)
T = TypeVar("T")


class _Closes(Protocol):
    def close(self) -> None: ...


def default_settings(lean: Path | None = None, lean_projects: tuple[Path, ...] = ()) -> RuntimeSettings:
    """For those who have no appliance: a broker of one's own, with its things in this user's cache folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "assay"
    own = BrokerSettings(
        state_dir=cache / "boxes",
        root_dir=cache / "guest-roots",
        backends=(BackendName.GVISOR, BackendName.NSJAIL),
        programs=tools.programs(lean, lean_projects),
    )
    return RuntimeSettings(own=own)


class Checker:
    """A context manager, safe to use from several threads."""

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
    ) -> None:
        """`settings`: a broker that runs, or what one of our own is told; it has to name `verifiers.tools.programs`.
        `sessions`: a pool to share, which stays open. `judge`: for the soft items of checklists. `lean`: the folder of
        a toolchain, and `lean_projects` further folders with compiled files. `workers`: texts that are decided at once.
        `tools_backend`: what holds our own tools."""
        self._settings, self._given_sessions, self._judge = settings, sessions, judge
        self._lean, self._lean_projects = lean, lean_projects
        self._workers = workers or len(os.sched_getaffinity(0))
        self._tools_backend = tools_backend
        self._lock = threading.RLock()
        self._made: dict[str, _Closes] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def check(self, spec: Spec, submission: str, seconds: float | None = None) -> Verdict:
        """One verdict. Raises SpecError, with a hint, for a spec that cannot be used, and for nothing else."""
        verdict = self._check_all([(spec, submission)], seconds)[0]
        if BAD_SPEC in verdict.evidence:
            raise SpecError(str(verdict.evidence[BAD_SPEC]), hint=str(verdict.evidence.get("hint", "")))
        return verdict

    def check_many(self, pairs: Sequence[tuple[Spec, str]], seconds: float | None = None) -> list[Verdict]:
        """A verdict for each pair, in order; `seconds` is the wall clock of one of them. Never raises for a pair: one
        whose spec cannot be used is `infra_error`, with the reason."""
        return self._check_all(pairs, seconds)

    def propose(self, spec: Spec, way: str, question: str, seconds: float) -> Found:
        """What one of `verifiers.proposals.proposing.ways(spec)` finds, in the worker that decides texts. It decides
        nothing. Raises InfrastructureError where the worker broke."""
        return self._service().propose(spec, way, question, seconds)

    def start(self) -> None:
        """Has what decides texts made warm now, in the background."""
        self._service().start()

    def close(self) -> None:
        """Ends everything that it started. Closing twice is fine."""
        with self._lock:
            self._closed = True
            made, self._made = list(self._made.values()), {}
            threads, self._threads = self._threads, None
        for part in reversed(made):
            part.close()
        if threads is not None:
            threads.shutdown(cancel_futures=True)

    def _check_all(self, pairs: Sequence[tuple[Spec, str]], seconds: float | None) -> list[Verdict]:
        decided: dict[float, list[int]] = {}
        conducted: dict[int, Future[Verdict]] = {}
        verdicts: dict[int, Verdict] = {}
        for place, (spec, submission) in enumerate(pairs):
            limit = seconds if seconds is not None else SECONDS.get(spec.kind, ELSE)
            if is_decided(spec):  # the worker checks those before it looks at a submission
                decided.setdefault(limit, []).append(place)
                continue
            try:
                check_spec(spec)
            except SpecError as error:
                verdicts[place] = bad_spec(spec, error)
            else:
                conducted[place] = self._pool().submit(self._conduct, spec, submission, limit)
        for limit, places in decided.items():
            found = self._service().verify_many([pairs[place] for place in places], limit)
            verdicts.update(zip(places, found, strict=True))
        for place, future in conducted.items():
            verdicts[place] = future.result()
        return [verdicts[place] for place in range(len(pairs))]

    def _conduct(self, spec: Spec, submission: str, seconds: float) -> Verdict:
        try:
            match spec:
                case ProgramSpec():
                    return self._programs().verify(spec, submission, seconds)
                case LeanSpec():
                    return self._proofs().verify(spec, submission, seconds)
                case ChecklistSpec():
                    return self._checklists().verify(spec, submission, seconds)
                case _:
                    raise SpecError(f"{spec.kind} needs no sandbox")
        except SpecError as error:
            return bad_spec(spec, error)
        except SandboxError as error:
            hint = f" ({error.hint})" if error.hint else ""
            return _infra_error(spec, f"{error}{hint}")
        except Exception as error:  # a verifier that breaks is our fault, and one item's only
            log.exception("the %s verifier broke", spec.kind)
            return _infra_error(spec, f"the verifier broke: {type(error).__name__}")

    # the parts, each made when it is first needed

    def _part(self, name: str, make: Callable[[], T]) -> T:
        with self._lock:
            if self._closed:
                raise ValueError("this checker is closed")
            found = self._made.get(name)
            if found is None:
                found = self._made[name] = make()  # type: ignore[assignment]
            return found  # type: ignore[return-value]

    def _known_settings(self) -> RuntimeSettings:
        with self._lock:
            if self._settings is None:
                self._settings = default_settings(self._lean, self._lean_projects)
            return self._settings

    def _boxes(self) -> ToolBoxes:
        return self._part("boxes", lambda: ToolBoxes(self._known_settings(), self._tools_backend))

    def _service(self) -> VerifierService:
        boxes = self._boxes() if self._may_have_boxes() else None
        return self._part("service", lambda: VerifierService(boxes=boxes, workers=self._workers, or_process=True))

    def _may_have_boxes(self) -> bool:
        return os.geteuid() == 0 or (self._settings is not None and self._settings.broker is not None)

    def _programs(self) -> ProgramVerifier:
        from runtime.sessions.pool import Sessions
        from verifiers.programs.verifier import ProgramVerifier

        settings = self._known_settings()
        sessions = self._given_sessions or self._part("sessions", lambda: Sessions(settings))
        return self._part("programs", lambda: ProgramVerifier(sessions, isolation=settings.backend.value))

    def _proofs(self) -> LeanVerifier:
        from verifiers.lean import toolchain
        from verifiers.lean.verifier import LeanVerifier

        boxes = self._boxes()

        def make() -> LeanVerifier:
            found = toolchain.find(self._lean, projects=self._lean_projects)
            return LeanVerifier(boxes, found, most=self._workers)

        return self._part("lean", make)

    def _checklists(self) -> ChecklistVerifier:
        from verifiers.checklists.verifier import ChecklistVerifier

        service = self._service()
        return self._part("checklists", lambda: ChecklistVerifier(service.verify, self._judge))

    def _pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._closed:
                raise ValueError("this checker is closed")
            if self._threads is None:
                self._threads = ThreadPoolExecutor(AT_ONCE * self._workers, thread_name_prefix="checker")
            return self._threads


def bad_spec(spec: Spec, error: SpecError) -> Verdict:
    """For one of many: it says nothing about the submission."""
    verdict = _infra_error(spec, f"the spec cannot be used: {error}")
    return verdict.model_copy(update={"evidence": {BAD_SPEC: str(error), "hint": error.hint}})


def _infra_error(spec: Spec, reason: str) -> Verdict:
    name, version = identity(spec)
    return Verdict(
        outcome=Outcome.INFRA_ERROR,
        score=0.0,
        reason=reason[:1000],
        ground=Ground.BROKEN,
        verifier=name,
        version=version,
        seconds=0.0,
    )
