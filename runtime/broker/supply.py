"""Where sandboxes come from: starts them for those who wait, in turn, with a bound on what is under way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runtime.backends.backend import Backend, Cause
from runtime.broker.boxes import Boxes, Live
from runtime.broker.queue import Place, Queue
from runtime.errors import SandboxError
from runtime.guest.wire import Op
from runtime.profile import Profile
from runtime.reactor import Reactor
from runtime.sandbox import Priority
from runtime.settings import BrokerSettings


@dataclass(frozen=True)
class Source:
    """What a sandbox is made from. Those of one key are alike."""

    key: str
    profile: Profile
    backend: Backend
    image: Path | None = None
    parent: str = ""


Given = Callable[[Live | SandboxError], None]


class Supply:
    def __init__(self, settings: BrokerSettings, reactor: Reactor) -> None:
        self.boxes = Boxes(reactor, self._pump, lambda _live: None)
        self._settings, self._reactor = settings, reactor
        self._queue: Queue[str, Given] = Queue(settings.waiting)
        self._sources: dict[str, Source] = {}
        self._starting = 0

    def ask(self, source: Source, *, caller: str, priority: Priority, given: Given) -> Place[str]:
        """Raises BusyError when too many wait. `given` comes once, with a ready box to be held at once or ended."""
        place = self._queue.add(given, source.key, caller=caller, priority=priority)
        self._sources[source.key] = source
        self._pump()
        return place

    def cancel(self, place: Place[str]) -> bool:
        return self._queue.cancel(place)

    def close(self) -> None:
        self.boxes.close()

    def _pump(self) -> None:
        while self._starting < self._settings.launches and len(self.boxes.alive) < self._settings.boxes:
            key = self._queue.next_start(lambda _key: False)
            if key is None:
                return
            self._start(self._sources[key])

    def _start(self, source: Source) -> None:
        self._queue.started(source.key)
        self._starting += 1

        def done(live: Live | SandboxError) -> None:
            self._starting -= 1
            self._queue.finished(source.key)
            given = self._queue.serve(source.key)
            if given is not None:
                given(live)
            elif isinstance(live, Live):
                self.boxes.end(live, Cause.ASKED)
            self._pump()

        self.boxes.start(
            source.backend,
            source.profile,
            key=source.key,
            image=source.image,
            parent=source.parent,
            op=Op.PING if source.image is not None else None,
            done=done,
        )
