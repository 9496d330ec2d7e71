"""Where one session runs: its tier, its place, and the history that takes it from one place to the next.

A call is carried to a place that knows the whole history; a place that does not is told it first, and each repeated
call has to end exactly as it did the first time. What always holds: one call at a time; its end is reported once, by
`answered` or `failed`, unless `leave` came first; whatever was asked for and is not wanted any more is given back.
Called from the reactor only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from runtime.errors import BrokerLostError, InfrastructureError, LimitError, SandboxError
from runtime.guest.wire import FULL, Kind, Op
from runtime.launcher import Fate, Kept
from runtime.sandbox import CallResult, CallStatus, Tier
from runtime.sessions.accounts import Account
from runtime.sessions.branches import Before, NewFile, Seed
from runtime.sessions.calls import Call
from runtime.sessions.compiling import compile_aside
from runtime.sessions.endings import (
    EMPTY,
    EMPTY_BUT_FILES,
    LOST_BY,
    TIER_OF,
    Ending,
    Lost,
    Past,
    Then,
    fingerprint,
    result_of,
    what_follows,
)
from runtime.sessions.places import Claim, Place, Places, Wish
from runtime.sessions.profiles import joined
from runtime.sessions.purity import Need
from runtime.sessions.request import Request
from runtime.sessions.supplies import Supplies, unwritten

ORDER = {tier: place for place, tier in enumerate(Tier)}
RETRIES = 2
"""How often a call may lose its sandbox through the fault of others before it goes where there are fewer of them."""
UNREPEATABLE = (
    "StateError: this code needs another place, but what the session computed before depends on a clock, on chance or"
    " on addresses and could not be repeated there; it starts again with no names, this call did not run"
)
BROKER_GONE = "the broker of this session's sandbox is gone, and its state with it"
ALL_SNAPSHOTS = "all {snapshots} snapshots of this session have been taken"
TAKE_A_NEW_ONE = "Open a new session; it starts a broker again where there is none."


class Placement:
    def __init__(
        self,
        seed: Seed,
        wish: Wish,
        places: Places,
        account: Account,
        *,
        answered: Callable[[Call, CallResult], None],
        failed: Callable[[Call, SandboxError], None],
    ) -> None:
        """`wish` names the session, its caller and its priority; the rest of it follows the seed."""
        self.tier, self.preload = seed.tier, seed.preload
        self._history, self._origin = list(seed.history), seed.origin
        self._supplies, self._before = Supplies(seed.files, wish), Before()
        self._wish, self._places, self._account = wish, places, account
        self._answered, self._failed = answered, failed
        self._call: Call | None = None
        self._request: Request | None = None
        self._place: Place | None = None
        self._claim: Claim | None = None
        self._asking = False
        self._broken: SandboxError | None = None

    def run(self, call: Call) -> None:
        self._call = call
        if call.keep:
            self._keep(call)
        else:
            self._go()

    def begin(self) -> None:
        """Asks for the place before anybody calls."""
        if self._place is None:
            self._ask()

    def leave(self) -> None:
        """Gives up the place, in the middle of a call if need be; the history stays."""
        if self._request is not None and self._place is not None:
            self._place.worker.withdraw(self._request)
        self._request = None
        if self._claim is not None:
            self._claim.cancel()
            self._claim = None
        self._asking = False
        self._supplies.stop()
        place, self._place = self._place, None
        if place is not None:
            place.leave()

    def end(self) -> None:
        """The session is over; nothing is reported any more."""
        self._call = None
        self.leave()
        self._release()
        self._before.give_up()

    def fork(self, n: int, done: Callable[[list[Seed] | SandboxError], None], *, undo: bool = False) -> None:
        """What `n` sessions need to begin with this one's names, or with those before the call that was kept. No call
        is under way."""
        if self._broken is not None:
            done(self._broken)
        elif undo:
            done(self._before.seeds(n))
        elif self._at_its_beginning or self._place is None:
            done(self._seed.times(n))
        elif self._place.worker.state != "ready":
            done(InfrastructureError("the session's sandbox has ended, and its state with it", hint="Call it first."))
        elif self._account.snapshots >= self._places.limits.snapshots:
            done(LimitError(ALL_SNAPSHOTS.format(snapshots=self._places.limits.snapshots)))
        else:
            self._account.snapshots += 1
            begin = Seed(Tier.SANDBOX, self.preload, files=self._supplies.files)
            self._places.snapshot(self._place.worker, lambda kept: done(begin.at(kept, n, self._places.forget_soon)))

    @property
    def _at_its_beginning(self) -> bool:
        """What a seed tells is all that there is; otherwise it takes a snapshot."""
        return self.tier is not Tier.SANDBOX or self._place is None or self._supplies.under_way

    @property
    def _seed(self) -> Seed:
        return Seed(self.tier, self.preload, tuple(self._history), self._origin, self._supplies.files)

    # what is kept of the moment before a call

    def _keep(self, call: Call) -> None:
        self._before.give_up()
        place = self._place
        if self._at_its_beginning or place is None:
            self._before.keep(self._seed.times(1)[0])
            self._go()
        elif place.worker.state != "ready":
            self._before.keep(InfrastructureError("the sandbox had ended before the call, and its state with it"))
            self._go()
        elif self._account.snapshots >= self._places.limits.snapshots:
            self._before.keep(LimitError(ALL_SNAPSHOTS.format(snapshots=self._places.limits.snapshots)))
            self._go()
        else:
            self._account.snapshots += 1
            self._places.snapshot(place.worker, partial(self._kept, call))

    def _kept(self, call: Call, kept: Kept | SandboxError) -> None:
        begin = Seed(Tier.SANDBOX, self.preload, files=self._supplies.files)
        seeds = begin.at(kept, 1, self._places.forget_soon)
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
        """Carries the call on, by way of whatever is missing."""
        call = self._call
        if call is None or self._supplies.under_way:
            return
        if self._broken is not None:
            self._fail(self._broken)
            return
        if call.need is not Need.BROKEN:
            self._raise_to(call.need.tier, call.preload)
        elif self.tier is Tier.PROCESS:
            compile_aside(self._places, self._wish, call, partial(self._compiled_aside, call))
            return
        place = self._place
        if place is None:
            self._ask()
        elif place.worker.state == "ready":
            self._continue(call, place)
        elif place.worker.lost_by is Lost.BROKER:
            self._break()
        elif self.tier is Tier.SANDBOX:
            place.worker.when_ended(partial(self._ended_between_calls, call, place))
        else:
            self.leave()
            self._ask()

    def _raise_to(self, tier: Tier, preload: tuple[str, ...] = ()) -> None:
        """Only ever to more isolation; the modules that were ready once stay so."""
        if ORDER[tier] > ORDER[self.tier]:
            self.leave()
            self.tier = tier
        movable = self._origin is None and (self._place is None or self.tier is Tier.PROCESS)
        if preload and movable and (more := joined(self.preload, preload)) != self.preload:
            self.leave()
            self.preload = more

    def _ask(self) -> None:
        if self._asking:
            return
        self._asking = True
        snapshot = self._origin.snapshot if self._origin is not None else None
        wish = self._wish._replace(tier=self.tier, preload=self.preload, snapshot=snapshot)
        claim = self._places.claim(wish, self._placed)
        if self._asking:  # it has not been given yet
            self._claim = claim

    def _placed(self, place: Place | SandboxError) -> None:
        self._asking, self._claim = False, None
        if isinstance(place, BrokerLostError) and self._history:
            self._break()  # a session that it served fails from here on, wherever it was when the broker died
            return
        if isinstance(place, SandboxError):
            if self._call is not None:
                self._fail(place)
            return
        self._place = place
        self._account.placed(place.worker, alone=self.tier is Tier.SANDBOX)
        fresh = self._origin is None
        self._release()
        if fresh and self._supplies.files:
            self._supplies.begin(place, self._supplied)
        else:
            self._go()

    def _supplied(self, failed: tuple[NewFile, Ending] | None) -> None:
        if failed is None:
            self._go()
        elif failed[1].kind is Lost.BROKER:
            self._break()
        else:
            self._break_with(unwritten(*failed))

    def _release(self) -> None:
        if self._origin is not None:
            self._origin.release()
            self._origin = None

    # in a place

    def _continue(self, call: Call, place: Place) -> None:
        if place.known < len(self._history):
            past = self._history[place.known]
            self._send(call, place, Op.RUN, past.source, self._places.limits.call_seconds, self._replayed)
        elif call.need is Need.BROKEN and self.tier is Tier.SHARED:
            self._send(call, place, Op.COMPILE, call.source, call.seconds, self._compiled)
        else:
            if self.tier is Tier.SANDBOX:
                self._history.clear()
                place.known = 0
            self._send(call, place, Op.RUN, call.source, call.seconds, self._ran)

    def _send(
        self,
        call: Call,
        place: Place,
        op: Op,
        source: str,
        limit: float,
        then: Callable[[Call, Place, Ending], None],
    ) -> None:
        def done(ending: Ending) -> None:
            if call is self._call:
                self._request = None
                then(call, place, ending)

        body = source.encode("utf-8", "surrogatepass")
        request = Request(op, place.number, body, limit, done, self._wish.caller, self._wish.priority)
        self._request = request
        place.worker.turn(request)

    def _replayed(self, call: Call, place: Place, ending: Ending) -> None:
        if fingerprint(ending) == self._history[place.known].ending:
            place.known += 1
            self._continue(call, place)
        elif ending.kind is Lost.BROKER:
            self._break()
        elif isinstance(ending.kind, Lost) and not ending.blamed:
            self._again(call)
        elif self.tier is Tier.SHARED:
            self._move(place, ending, Tier.PROCESS)
        elif self.tier is Tier.PROCESS and ending.kind not in (Kind.OK, Kind.EXCEPTION):
            self._move(place, ending, Tier.SANDBOX)  # stopped, perhaps through others, before it could end differently
        else:
            self.leave()
            self._history.clear()
            self._answer(
                CallResult(
                    status=CallStatus.EXCEPTION,
                    error=UNREPEATABLE,
                    seconds=ending.seconds,
                    tier=TIER_OF[place.worker.profile.mode],
                    sandbox=place.worker.id,
                )
            )

    def _compiled_aside(self, call: Call, found: tuple[Place, Ending] | SandboxError) -> None:
        if call is not self._call:
            return
        if isinstance(found, SandboxError):
            self._fail(found)
        else:
            self._compiled(call, *found)

    def _compiled(self, call: Call, place: Place, ending: Ending) -> None:
        if ending.kind is Kind.EXCEPTION:
            self._report(call, place, ending)
        elif ending.kind is Lost.BROKER:
            self._break()
        elif isinstance(ending.kind, Lost) and not ending.blamed:
            self._again(call)
        else:
            call.need = Need.COMPUTE  # the guest makes something of it that the host could not parse
            self._go()

    def _ran(self, call: Call, place: Place, ending: Ending) -> None:
        match what_follows(self.tier, ending, call.seconds):
            case Then.ANSWER:
                if self.tier is not Tier.SANDBOX:
                    self._history.append(Past(call.source, fingerprint(ending)))
                    place.known = len(self._history)
                self._report(call, place, ending)
            case Then.UNDO:
                self.leave()
                self._report(call, place, ending)
            case Then.EMPTY:
                self.leave()
                self._history.clear()
                self._report(call, place, ending, aside=self._emptied)
            case Then.AGAIN:
                self._again(call)
            case Then.PROCESS:
                self._move(place, ending, Tier.PROCESS)
            case Then.SANDBOX:
                self._move(place, ending, Tier.SANDBOX)
            case Then.BROKEN:
                self._break()

    def _move(self, place: Place, ending: Ending, tier: Tier) -> None:
        """What could not be finished among others is run again with more isolation: nothing of it was seen."""
        if ending.kind is Kind.MEMORY and ending.report == FULL:
            place.worker.retire()
        self._raise_to(tier)
        self._go()

    def _again(self, call: Call) -> None:
        call.losses += 1
        self.leave()
        if call.losses > RETRIES:
            if self.tier is Tier.SANDBOX:
                self._fail(InfrastructureError("the call lost its sandbox again and again", hint="Run `assay doctor`."))
                return
            call.losses = 0
            self._raise_to(Tier.PROCESS if self.tier is Tier.SHARED else Tier.SANDBOX)
        self._go()

    def _ended_between_calls(self, call: Call, place: Place, fate: Fate) -> None:
        """A sandbox that ended while nothing was asked of it: by its own code, or for a limit. The call did not run."""
        if call is not self._call or place is not self._place:
            return
        self.leave()
        self._history.clear()
        kind = LOST_BY.get(fate.cause, Lost.DIED)
        self._report(call, place, Ending(kind, b"", b"", 0.0), aside=self._emptied)

    # the end of a call

    def _break(self) -> None:
        self._break_with(InfrastructureError(BROKER_GONE, hint=TAKE_A_NEW_ONE))

    def _break_with(self, error: SandboxError) -> None:
        """This call and all later ones fail."""
        self._broken = error
        self.leave()
        self._history.clear()
        self._fail(error)

    def _report(self, call: Call, place: Place, ending: Ending, *, aside: str = "") -> None:
        worker = place.worker
        self._answer(
            result_of(
                ending,
                limits=self._places.limits,
                seconds=call.seconds,
                tier=TIER_OF[worker.profile.mode],
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
