"""One sandbox from its source: restored from an image where there is one, else started fresh; and the first of a kind
frozen, so that there is one.

What always holds: each start ends once, with a box that is ready or with an error; a snapshot stays in the store while
a box is being restored from it. Sandboxes that begin alike draw the same from Python's `random`, so that a history can
be repeated in another one; only a branch that asks for it is given a new seed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from runtime.backends.backend import Backend
from runtime.broker.boxes import START_SECONDS, Boxes, Live, State
from runtime.broker.golden import Golden, Kind, Standing
from runtime.broker.spans import Spans
from runtime.broker.store import INNER, Snapshot, Store
from runtime.errors import InfrastructureError, SandboxError
from runtime.guest.wire import Op
from runtime.profile import Profile


@dataclass(frozen=True)
class Source:
    """What a sandbox is made from: a golden image, or a snapshot."""

    key: str
    """Of the image; sandboxes of one key are alike."""
    profile: Profile
    backend: Backend
    kind: Kind | None = None
    snapshot: Snapshot | None = None


@dataclass(frozen=True)
class Outcome:
    """How a start ended."""

    live: Live | SandboxError
    seconds: float
    blames_image: bool = False
    """It could not be restored from its golden image, which was thrown away: another start may do better."""


Done = Callable[[Outcome], None]


class Starts:
    def __init__(self, boxes: Boxes, golden: Golden, store: Store, counts: Counter[str], spans: Spans) -> None:
        self._boxes, self._golden, self._store = boxes, golden, store
        self._counts, self._spans = counts, spans
        self._closed = False

    def blocked(self, source: Source, changed: Callable[[], None]) -> bool:
        """Whether to wait, while the golden image is looked at or made; `changed` is called then."""
        if source.kind is None:
            return False
        standing = self._golden.standing(source.kind)
        if standing is Standing.UNKNOWN:
            self._golden.look(source.kind, changed)
            return True
        return standing is Standing.BUSY

    def start(self, source: Source, changed: Callable[[], None], done: Done) -> None:
        """Begins one; `changed` is called when a golden image has come of it, after `done`."""
        if source.snapshot is not None:
            self._restore(source, source.snapshot, done)
            return
        assert source.kind is not None
        match self._golden.standing(source.kind):
            case Standing.HERE:
                self._from_golden(source, source.kind, done)
            case Standing.MISSING:
                self._first(source, source.kind, changed, done)
            case _:
                self._fresh(source, done)

    def close(self) -> None:
        """What fails from now on says nothing about images."""
        self._closed = True

    def _restore(self, source: Source, snapshot: Snapshot, done: Done) -> None:
        self._store.refer(snapshot, INNER)

        def restored(outcome: Outcome) -> None:
            self._store.release(snapshot, INNER)
            done(outcome)

        self._boxes.start(
            source.backend,
            source.profile,
            key=source.key,
            image=snapshot.image,
            parent=snapshot.key,
            op=Op.PING,
            done=self._timed("restore", restored),
        )

    def _from_golden(self, source: Source, kind: Kind, done: Done) -> None:
        def restored(outcome: Outcome) -> None:
            if isinstance(outcome.live, SandboxError) and not self._closed:
                self._golden.drop(kind, outcome.live)
                outcome = Outcome(outcome.live, outcome.seconds, blames_image=True)
            done(outcome)

        self._boxes.start(
            source.backend,
            source.profile,
            key=source.key,
            image=self._golden.image(kind),
            parent="",
            op=Op.PING,
            done=self._timed("restore", restored),
        )

    def _fresh(self, source: Source, done: Done) -> None:
        self._boxes.start(
            source.backend,
            source.profile,
            key=source.key,
            image=None,
            parent="",
            op=None,
            done=self._timed("start", done),
        )

    def _first(self, source: Source, kind: Kind, changed: Callable[[], None], done: Done) -> None:
        """It becomes the golden image, and then goes where it was wanted."""
        self._golden.begin(kind)

        def started(outcome: Outcome) -> None:
            live = outcome.live
            if isinstance(live, SandboxError):
                self._golden.cannot(kind, live)
                done(outcome)
                return
            try:
                new = self._golden.folder_for(kind)
            except OSError as error:
                self._golden.cannot(kind, error)
                done(outcome)
                return

            def frozen(problem: SandboxError | None) -> None:
                if problem is None:
                    self._golden.keep(kind, new, changed)
                else:
                    self._golden.abandon(kind, new, problem)
                if live.state is State.READY:
                    self._boxes.greet(live, Op.PING, START_SECONDS, greeted)
                else:
                    greeted(InfrastructureError(f"sandbox {live.id} ended while its image was made"))

            def greeted(problem: SandboxError | None) -> None:
                done(Outcome(live if problem is None else problem, outcome.seconds))

            self._boxes.freeze(live, new / "image", frozen, settled=True)

        self._fresh(source, started)

    def _timed(self, name: str, done: Done) -> Callable[[Live | SandboxError], None]:
        begun = time.monotonic()

        def ended(live: Live | SandboxError) -> None:
            now = time.monotonic()
            if isinstance(live, Live):
                self._spans.add(name, now - begun, now)
                self._counts["launches_cold" if name == "start" else "launches_restored"] += 1
            done(Outcome(live, now - begun))

        return ended
