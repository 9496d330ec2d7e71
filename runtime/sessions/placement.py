"""Placement of one session: its tier, its place, and the history that it carries between places.

A call runs in a place that knows the whole history; a place that does not gets it replayed first, and each replayed
call must end exactly as before. Invariants: one call at a time; its end is reported once, by `answered` or `failed`,
unless `leave` came first; requested resources that are no longer wanted are given back. Called from the reactor only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from runtime.broker_api import Termination, Ticket
from runtime.errors import (
    BadRequestError,
    BrokerLostError,
    InfrastructureError,
    LimitError,
    SandboxError,
    StartError,
    StarvedError,
)
from runtime.guest.wire import FULL, Op, ReplyKind
from runtime.sandbox import CallResult, SnapshotId, Tier
from runtime.sessions.branches import Before, NewFile, Seed
from runtime.sessions.outcomes import (
    EMPTY,
    EMPTY_BUT_FILES,
    HAD_ENDED,
    LOST_BY,
    CallOutcome,
    LossCause,
    NextStep,
    Past,
    fingerprint,
    result_of,
    what_follows,
)
from runtime.sessions.ports import Port, PortRequest, Ports
from runtime.sessions.purity import Need
from runtime.sessions.session_queue import Done, SessionCall, SessionRequest
from runtime.sessions.starts import joined
from runtime.sessions.supplies import Supplies, unwritten
from runtime.sessions.usage_meter import UsageMeter

ORDER = {tier: port for port, tier in enumerate(Tier)}
RETRIES = 2
"""Number of times a call may lose its sandbox through others before it moves to a tier with fewer of them."""
UNREPEATABLE = "the session must move to another place, but its history gives different results there"
KNOWN_SECONDS = 10.0
"""Timeout of a place for an acknowledgement, in seconds."""
BROKER_GONE = "the broker of this session's sandbox is gone, and the session's state with it"
STARVED = "other work used the CPUs until a call's time was over, and the session's state is lost"
ALL_SNAPSHOTS = "all {snapshots} snapshots of this session have been taken"
TAKE_A_NEW_ONE = "Open a new session, which starts a broker if needed."


class SessionPlacement:
    def __init__(
        self,
        seed: Seed,
        terms: PortRequest,
        ports: Ports,
        account: UsageMeter,
        *,
        answered: Callable[[SessionCall, CallResult], None],
        failed: Callable[[SessionCall, SandboxError], None],
    ) -> None:
        """Creates a session's state without a place in a sandbox. `terms` names the session, its caller and its
        priority; its other fields follow the seed."""
        self.tier, self.preload = seed.tier, seed.preload
        self._history, self._origin, self._chance = list(seed.history), seed.origin, seed.chance
        self._supplies, self._before = Supplies(seed.files, terms), Before()
        self._terms, self._ports, self._account = terms, ports, account
        self._answered, self._failed = answered, failed
        self._call: SessionCall | None = None
        self._request: SessionRequest | None = None
        self._port: Port | None = None
        self._claim: Ticket | None = None
        self._asking = False
        self._broken: SandboxError | None = None

    def run(self, call: SessionCall) -> None:
        self._call = call
        if call.keep:
            self._keep(call)
        else:
            self._go()

    def begin(self) -> None:
        """Requests the session's place in a sandbox before the first call."""
        if self._port is None:
            self._ask()

    def leave(self) -> None:
        """Gives up the session's place in a sandbox, even during a call; the history stays."""
        if self._request is not None and self._port is not None:
            self._port.worker.withdraw(self._request)
        self._request = None
        if self._claim is not None:
            self._claim.cancel()
            self._claim = None
        self._asking = False
        self._supplies.stop()
        port, self._port = self._port, None
        if port is not None:
            port.leave()

    def end(self) -> None:
        """Ends the session and frees its place; nothing more is reported."""
        self._call = None
        self.leave()
        self._release()
        self._before.give_up()

    def fork(self, n: int, done: Callable[[list[Seed] | SandboxError], None], *, undo: bool = False) -> None:
        """Creates starting points for `n` sessions with this session's names, or those before the kept call. Requires
        that no call is running."""
        if self._broken is not None:
            done(self._broken)
        elif undo:
            done(self._before.seeds(n))
        else:
            gone = InfrastructureError("the session's sandbox and its state have ended", hint="Call the session first.")
            self._begin_here(n, gone, done)

    def _begin_here(self, n: int, gone: SandboxError, done: Callable[[list[Seed] | SandboxError], None]) -> None:
        """Creates starting points for `n` sessions from a complete history, else from a snapshot. `gone` is the error
        of an ended sandbox."""
        files, port = self._supplies.files, self._port
        knows_all = port is not None and port.known == len(self._history) and not self._supplies.under_way
        if self.tier is not Tier.SANDBOX or port is None or not knows_all:
            here = Seed(self.tier, self.preload, tuple(self._history), self._origin, files, self._chance)
            done(here.times(n))
        elif port.worker.state != "ready":
            done(gone)
        elif self._account.snapshots >= self._ports.limits.snapshots:
            done(LimitError(ALL_SNAPSHOTS.format(snapshots=self._ports.limits.snapshots)))
        else:
            begin = Seed(Tier.SANDBOX, self.preload, files=files)

            def taken(snapshot: SnapshotId | SandboxError) -> None:
                self._account.snapshots += not isinstance(snapshot, SandboxError)
                done(begin.at(snapshot, n, self._ports.forget_soon))

            self._ports.snapshot(port.worker, taken)

    # the undo point before a call

    def _keep(self, call: SessionCall) -> None:
        self._before.give_up()
        gone = InfrastructureError("the sandbox and its state had ended before the call")
        self._begin_here(1, gone, partial(self._seeds_ready, call))

    def _seeds_ready(self, call: SessionCall, seeds: list[Seed] | SandboxError) -> None:
        if call is self._call:
            self._before.keep(seeds if isinstance(seeds, SandboxError) else seeds[0])
            self._go()
        elif isinstance(seeds, list):  # the session has ended meanwhile
            seeds[0].release()

    @property
    def _emptied(self) -> str:
        return EMPTY_BUT_FILES if self._supplies.files else EMPTY

    # to a place

    def _go(self) -> None:
        """Advances the session's call by its next missing step: a place, then the run."""
        call = self._call
        if call is None or self._supplies.under_way:
            return
        if self._broken is not None:
            self._fail(self._broken)
            return
        if call.need is not Need.BROKEN:
            self._raise_to(call.need.tier, call.preload)
        elif self.tier is Tier.PROCESS:
            self._compile_aside(call)
            return
        port = self._port
        if port is None:
            self._ask()
        elif port.worker.state == "ready":
            self._continue(call, port)
        elif port.worker.lost_by is LossCause.BROKER:
            self._break()
        elif self.tier is Tier.SANDBOX:
            port.worker.when_ended(partial(self._ended_between_calls, call, port))
        else:
            self.leave()
            self._ask()

    def _raise_to(self, tier: Tier, preload: tuple[str, ...] = ()) -> None:
        """Moves the session to more isolation if required, never less; modules once preloaded stay so."""
        if ORDER[tier] > ORDER[self.tier]:
            self.leave()
            self.tier = tier
        movable = self._origin is None and (self._port is None or self.tier is Tier.PROCESS)
        if preload and movable and (more := joined(self.preload, preload)) != self.preload:
            self.leave()
            self.preload = more

    def _ask(self) -> None:
        if self._asking:
            return
        self._asking = True
        snapshot = self._origin.snapshot if self._origin is not None else None
        terms = self._terms._replace(tier=self.tier, preload=self.preload, snapshot=snapshot)
        claim = self._ports.claim(terms, self._entered)
        if self._asking:  # not granted yet
            self._claim = claim

    def _entered(self, port: Port | SandboxError) -> None:
        self._asking, self._claim = False, None
        if self._is_gone(port):
            self._break()
            return
        if isinstance(port, SandboxError):
            if self._call is not None:
                self._fail(port)
            return
        self._port = port
        self._account.placed(port.worker, alone=self.tier is Tier.SANDBOX)
        fresh = self._origin is None
        self._release()
        if fresh and self._supplies.files:
            self._supplies.begin(port, self._supplied)
        else:
            self._go()

    def _is_gone(self, answer: Port | SandboxError) -> bool:
        """True if the session's state was lost with a broker: one that served it, or one that had its origin snapshot,
        which the next broker does not know."""
        if self._origin is not None:
            return isinstance(answer, BrokerLostError | BadRequestError)
        return isinstance(answer, BrokerLostError) and bool(self._history)

    def _supplied(self, failed: tuple[NewFile, CallOutcome] | None) -> None:
        if failed is None:
            self._go()
        elif failed[1].kind is LossCause.BROKER:
            self._break()
        else:
            self._break_with(unwritten(*failed))

    def _release(self) -> None:
        if self._origin is not None:
            self._origin.release()
            self._origin = None

    # in a place

    def _continue(self, call: SessionCall, port: Port) -> None:
        past = self._history[port.known] if port.known < len(self._history) else None
        chance = self._chance if past is None else past.seed
        if chance != port.seed:
            port.seed = chance
            if self.tier is not Tier.SHARED:  # pure code draws no random numbers
                self._send(call, port, Op.SEED, chance, KNOWN_SECONDS, self._seeded)
                return
        if past is not None:
            self._send(call, port, Op.RUN, past.source, self._ports.limits.call_seconds, self._replayed)
        elif call.need is Need.BROKEN and self.tier is Tier.SHARED:
            self._send(call, port, Op.COMPILE, call.source, call.seconds, self._compiled)
        else:
            if self.tier is Tier.SANDBOX:
                self._history.clear()
                port.known = 0
            self._send(call, port, Op.RUN, call.source, call.seconds, self._ran, call.patience)

    def _send(
        self,
        call: SessionCall,
        port: Port,
        op: Op,
        source: str | bytes,
        limit: float,
        on_done: Callable[[SessionCall, Port, CallOutcome], None],
        patience: float = 1.0,
    ) -> None:
        def done(outcome: CallOutcome) -> None:
            if call is self._call:
                self._request = None
                on_done(call, port, outcome)

        self._request = self._request_to(port, op, source, limit, done)
        self._request.patience = patience
        port.worker.turn(self._request)

    def _request_to(self, port: Port, op: Op, source: str | bytes, limit: float, done: Done) -> SessionRequest:
        body = source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass")
        return SessionRequest(op, port.number, body, limit, done, self._terms.caller, self._terms.priority)

    def _seeded(self, call: SessionCall, port: Port, outcome: CallOutcome) -> None:
        if outcome.kind is ReplyKind.READY:
            self._continue(call, port)
        elif outcome.kind is LossCause.BROKER:
            self._break()
        else:
            self._again(call)

    def _replayed(self, call: SessionCall, port: Port, outcome: CallOutcome) -> None:
        if fingerprint(outcome) == self._history[port.known].outcome:
            port.known += 1
            self._continue(call, port)
        elif outcome.kind is LossCause.BROKER:
            self._break()
        elif isinstance(outcome.kind, LossCause) and not outcome.blamed:
            self._again(call)
        elif self.tier is Tier.SHARED:
            self._move(port, outcome, Tier.PROCESS)
        elif self.tier is Tier.PROCESS and outcome.kind not in (ReplyKind.OK, ReplyKind.EXCEPTION):
            self._move(port, outcome, Tier.SANDBOX)  # stopped, perhaps because of others, before it could diverge
        else:
            self._break_with(StartError(UNREPEATABLE, hint="Open a new session."))

    def _compile_aside(self, call: SessionCall) -> None:
        """Compiles source that the host could not parse in a shared interpreter without session state: a compute-only
        process may open no file, and Python's parser looks for the source that it reports."""

        def on_ready(port: Port | SandboxError) -> None:
            if isinstance(port, SandboxError):
                if call is self._call:
                    self._fail(port)
                return
            aside = port

            def compiled(outcome: CallOutcome) -> None:
                aside.leave()
                if call is self._call:
                    self._compiled(call, aside, outcome)

            aside.worker.turn(self._request_to(aside, Op.COMPILE, call.source, call.seconds, compiled))

        self._ports.claim(self._terms._replace(tier=Tier.SHARED, preload=(), snapshot=None), on_ready)

    def _compiled(self, call: SessionCall, port: Port, outcome: CallOutcome) -> None:
        if outcome.kind is ReplyKind.EXCEPTION:
            self._report(call, port, outcome)
        elif outcome.kind is LossCause.BROKER:
            self._break()
        elif isinstance(outcome.kind, LossCause) and not outcome.blamed:
            self._again(call)
        else:
            call.need = Need.COMPUTE  # the guest can compile what the host could not parse
            self._go()

    def _ran(self, call: SessionCall, port: Port, outcome: CallOutcome) -> None:
        match what_follows(self.tier, outcome, call.seconds):
            case NextStep.ANSWER:
                if self.tier is not Tier.SANDBOX:
                    self._history.append(Past(call.source, fingerprint(outcome), self._chance))
                    port.known = len(self._history)
                self._report(call, port, outcome)
            case NextStep.UNDO:
                self.leave()
                self._report(call, port, outcome)
            case NextStep.EMPTY:
                self.leave()
                self._history.clear()
                self._report(call, port, outcome, aside=self._emptied)
            case NextStep.AGAIN:
                self._again(call)
            case NextStep.PROCESS:
                self._move(port, outcome, Tier.PROCESS)
            case NextStep.SANDBOX:
                self._move(port, outcome, Tier.SANDBOX)
            case NextStep.BROKEN if outcome.kind is LossCause.STARVED:
                self._break_with(StarvedError(STARVED, hint="Open a new session when the machine is less busy."))
            case NextStep.BROKEN:
                self._break()

    def _move(self, port: Port, outcome: CallOutcome, tier: Tier) -> None:
        """Retries an unfinished call in a tier with more isolation: nothing of it was visible."""
        if outcome.kind is ReplyKind.MEMORY and outcome.report == FULL:
            port.worker.retire()
        self._raise_to(tier)
        self._go()

    def _again(self, call: SessionCall) -> None:
        call.losses += 1
        self.leave()
        if call.losses > RETRIES:
            if self.tier is Tier.SANDBOX:
                self._fail(InfrastructureError("the call lost its sandbox repeatedly", hint="Run `assay doctor`."))
                return
            call.losses = 0
            self._raise_to(Tier.PROCESS if self.tier is Tier.SHARED else Tier.SANDBOX)
        self._go()

    def _ended_between_calls(self, call: SessionCall, port: Port, termination: Termination) -> None:
        """Answers a call that did not run: its sandbox ended while idle, by a limit or by its own code."""
        if call is not self._call or port is not self._port:
            return
        if port.worker.lost_by is LossCause.BROKER:
            self._break()
            return
        self.leave()
        self._history.clear()
        kind = LOST_BY.get(termination.cause, LossCause.DIED)
        self._report(call, port, CallOutcome(kind, b"", b"", 0.0), aside=HAD_ENDED + self._emptied)

    # the end of a call

    def _break(self) -> None:
        self._break_with(InfrastructureError(BROKER_GONE, hint=TAKE_A_NEW_ONE))

    def _break_with(self, error: SandboxError) -> None:
        """Fails this and all later calls of the session with the error."""
        self._broken = error
        self.leave()
        self._history.clear()
        self._fail(error)

    def _report(self, call: SessionCall, port: Port, outcome: CallOutcome, *, aside: str = "") -> None:
        worker = port.worker
        self._answer(
            result_of(
                outcome,
                limits=self._ports.limits,
                seconds=call.seconds,
                tier=Tier(worker.profile.mode),
                sandbox=worker.id,
                aside=aside,
            )
        )

    def _answer(self, result: CallResult) -> None:
        call, self._call = self._call, None
        if call is not None:
            self._answered(call, result)

    def _fail(self, error: SandboxError) -> None:
        call, self._call = self._call, None
        if call is not None:
            self._failed(call, error)
