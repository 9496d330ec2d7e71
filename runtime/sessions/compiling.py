"""Has a shared interpreter compile what the host could not parse: it can do nothing but complain of it.

That is for sessions of the process tier. A process there may open no file, and Python's parser does: it looks for the
source that it complains of.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.errors import SandboxError
from runtime.guest.wire import Op
from runtime.sandbox import Tier
from runtime.sessions.calls import Call
from runtime.sessions.endings import Ending
from runtime.sessions.places import Place, Places, Wish
from runtime.sessions.request import Request


def compile_aside(
    places: Places, wish: Wish, call: Call, done: Callable[[tuple[Place, Ending] | SandboxError], None]
) -> None:
    """Calls back once, with how it ended and where. The session keeps nothing there."""

    def given(place: Place | SandboxError) -> None:
        if isinstance(place, SandboxError):
            done(place)
            return
        aside = place

        def compiled(ending: Ending) -> None:
            aside.leave()
            done((aside, ending))

        body = call.source.encode("utf-8", "surrogatepass")
        request = Request(Op.COMPILE, aside.number, body, call.seconds, compiled, wish.caller, wish.priority)
        aside.worker.turn(request)

    places.claim(wish._replace(tier=Tier.SHARED, preload=(), snapshot=None), given)
