"""Starts one sandbox from its source: restored from an image if available, else fresh; the first of a kind is frozen.

Invariants: each start ends once, with a ready box or an error; a snapshot stays in the store while a box is restored
from it. Sandboxes from equal sources draw the same numbers from Python's `random`, so that a history can be replayed
elsewhere; only a branch that requests it gets a new seed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from runtime.broker.base_images import BaseImages, ImageState, StartSource
from runtime.broker.boxes import START_SECONDS, BrokerBoxes, Live, State
from runtime.broker.spans import Spans
from runtime.broker.store import INNER, Store, StoredSnapshot
from runtime.errors import InfrastructureError, SandboxError, StartError
from runtime.guest.wire import Op


@dataclass(frozen=True)
class StartOutcome:
    """Result of starting a sandbox: the sandbox or an error."""

    live: Live | SandboxError
    seconds: float
    blames_image: bool = False
    """True if its golden image failed and was discarded: another start may succeed."""


Done = Callable[[StartOutcome], None]


class BoxStarts:
    def __init__(
        self,
        boxes: BrokerBoxes,
        base_images: BaseImages,
        store: Store,
        counts: Counter[str],
        spans: Spans,
        changed: Callable[[], None],
    ) -> None:
        """Creates the starter of sandboxes, fresh ones or from images. `changed` is called when a golden image was
        checked, or made after a start had ended."""
        self._boxes, self._base_images, self._store = boxes, base_images, store
        self._counts, self._spans, self._changed = counts, spans, changed
        self._closed = False

    def blocked(self, source: StartSource) -> bool:
        """True while a start must wait for its golden image to be checked or made; begins the check if needed."""
        if source.snapshot is not None:
            return False
        state = self._base_images.state(source)
        if state is ImageState.UNKNOWN:
            self._base_images.inspect(source, self._changed)
        return state in (ImageState.UNKNOWN, ImageState.BUSY)

    def start(self, source: StartSource, done: Done) -> None:
        if source.snapshot is not None:
            self._restore(source, source.snapshot, done)
            return
        match self._base_images.state(source):
            case ImageState.HERE:
                self._from_base_image(source, done)
            case ImageState.MISSING:
                self._first(source, done)
            case _:
                self._fresh(source, done)

    def close(self) -> None:
        """Stops blaming golden images for failed starts, because the broker is closing."""
        self._closed = True

    def _restore(self, source: StartSource, snapshot: StoredSnapshot, done: Done) -> None:
        self._store.refer(snapshot, INNER)

        def restored(outcome: StartOutcome) -> None:
            self._store.release(snapshot, INNER)
            done(outcome)

        self._from_image(source, snapshot.image, restored)

    def _from_base_image(self, source: StartSource, done: Done) -> None:
        def restored(outcome: StartOutcome) -> None:
            if isinstance(outcome.live, SandboxError) and not self._closed:
                self._base_images.drop(source, outcome.live)
                outcome = replace(outcome, blames_image=True)
            done(outcome)

        self._from_image(source, self._base_images.image(source), restored)

    def _from_image(self, source: StartSource, image: Path, done: Done) -> None:
        self._boxes.start(source, image, Op.PING, self._timed("restore", done))

    def _fresh(self, source: StartSource, done: Done) -> None:
        self._boxes.start(source, None, None, self._timed("start", done))

    def _first(self, source: StartSource, done: Done) -> None:
        """Starts a fresh sandbox, freezes it as the golden image of its source, then delivers it."""
        self._base_images.begin(source)

        def started(outcome: StartOutcome) -> None:
            try:
                if isinstance(outcome.live, SandboxError):
                    raise outcome.live
                live, new = outcome.live, self._base_images.new_folder()
            except (SandboxError, OSError) as error:
                self._base_images.cannot(source, error)
                done(outcome)
                return

            def frozen(problem: SandboxError | None) -> None:
                if problem is None:
                    self._base_images.keep(source, new, self._changed)
                else:
                    self._base_images.abandon(source, new, problem)
                if live.state is State.READY:
                    self._boxes.handshake(live, Op.PING, START_SECONDS, answered)
                else:
                    answered(StartError(f"sandbox {live.id} ended while its image was made"))

            def answered(problem: SandboxError | None) -> None:
                done(StartOutcome(live if problem is None else problem, outcome.seconds))

            self._boxes.freeze(live, new / "image", frozen, settled=True)

        self._fresh(source, started)

    def _timed(self, name: str, done: Done) -> Callable[[Live | SandboxError], None]:
        begun = time.monotonic()

        def ended(live: Live | SandboxError) -> None:
            now = time.monotonic()
            if isinstance(live, Live):
                self._spans.add(name, now - begun, now)
                self._counts["launches_cold" if name == "start" else "launches_restored"] += 1
            elif isinstance(live, InfrastructureError):
                live = StartError(str(live), hint=live.hint)
            done(StartOutcome(live, now - begun))

        return ended
