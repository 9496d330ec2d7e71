"""The broker's only exchange with a guest asks: is it ready, does it live after a restore, new random numbers.

What always holds: nothing is handed over that did not answer with a nonce of its own (a fresh start: with the one frame
READY that it says by itself) and with not one byte more; a guest that is silent, or says anything else, is given up.
"""

from __future__ import annotations

import os
import selectors
from collections.abc import Callable

from runtime.backends.process_box import ProcessBox
from runtime.errors import InfrastructureError, SandboxError
from runtime.guest import wire
from runtime.guest.wire import Op, ReplyKind
from runtime.reactor import Reactor

SEEDS = 32
REPLY_BYTES = 1 << 12
HINT = "If this stays, `doctor` says what the backend can do on this machine."


class Handshake:
    """Is one exchange with a sandbox that nobody holds. Calls back once, with what went wrong or None, and then no
    longer watches the descriptors."""

    def __init__(
        self,
        reactor: Reactor,
        box: ProcessBox,
        op: Op | None,
        seconds: float,
        done: Callable[[SandboxError | None], None],
    ) -> None:
        """`op` is PING, RESEED, or None for a guest that has just been started and speaks first.

        RESEED brings 32 bytes of os.urandom, drawn here on the host, for this one sandbox. The guest seeds with them
        the global generators of `random` and `numpy.random`. Beyond reach are generators that user code made itself,
        what was drawn, minted or hashed before the snapshot (tokens, keys, dictionaries' order), and the layout of
        memory; what the guest's kernel gives out as random (os.urandom) comes from the host at each read and needs it
        not.
        """
        self._reactor, self._box, self._done = reactor, box, done
        self._nonce = wire.NO_NONCE if op is None else os.urandom(wire.NONCE_BYTES)
        self._replies = wire.Replies(REPLY_BYTES)
        self._received = 0
        self._timer = reactor.after(seconds, lambda: self._end(f"it said nothing for {seconds:g} s"))
        reactor.watch(box.replies, selectors.EVENT_READ, self._receive)
        if op is not None:
            body = os.urandom(SEEDS) if op is Op.RESEED else b""
            try:
                os.write(box.requests, wire.pack_request(self._nonce, op, 0, body))  # it fits in any empty pipe
            except OSError as error:
                problem = f"it takes no request: {error}"
                reactor.call(lambda: self._end(problem))

    def give_up(self) -> None:
        """Somebody else ends the sandbox; calls back with that, unless it has called back."""
        self._end("it was ended")

    def _receive(self) -> None:
        if self._timer.cancelled:
            return
        try:
            data = os.read(self._box.replies, 1 << 14)
            self._received += len(data)
            replies = self._replies.replies(data)
        except BlockingIOError:
            return
        except (OSError, wire.FrameError) as error:
            self._end(f"it answered wrongly: {error}")
            return
        if not data:
            self._end("it ended at once")
        elif replies:
            self._end("" if self._received == wire.REPLY.size and self._is_right(replies[0]) else "it answered wrongly")

    def _is_right(self, reply: wire.Reply) -> bool:
        return reply.nonce == self._nonce and reply.kind == ReplyKind.READY

    def _end(self, problem: str) -> None:
        if self._timer.cancelled:
            return
        self._timer.cancel()
        self._reactor.watch(self._box.replies, 0, self._receive)
        if not problem:
            self._done(None)
            return
        complaint = self._box.complaint()
        reason = f"{problem}; it wrote: {complaint!r}" if complaint else problem
        text = f"sandbox {self._box.id} did not become ready: {reason}"
        self._done(InfrastructureError(text, hint=HINT))
