"""Broker's only exchange with a guest: readiness, liveness after a restore, new random numbers.

Invariants: only a guest that answered with its nonce (a fresh start: with its initial READY frame) and not one byte
more is handed over; a silent guest, or one that says anything else, is given up.
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
HINT = "If this persists, run `assay doctor`."


class Handshake:
    """Exchange of one message with a sandbox that nobody holds yet. Calls back once, with an error or None, and then
    stops watching the descriptors."""

    def __init__(
        self,
        reactor: Reactor,
        box: ProcessBox,
        op: Op | None,
        seconds: float,
        done: Callable[[SandboxError | None], None],
    ) -> None:
        """Starts to exchange one message with a sandbox that nobody holds yet. `op` is PING, RESEED, or None for a
        guest that was just started and speaks first.

        RESEED sends 32 bytes of os.urandom, drawn here on the host, for this one sandbox. The guest seeds the global
        generators of `random` and `numpy.random` with them. Out of reach are generators created by user code, values
        drawn, generated or hashed before the snapshot (tokens, keys, dictionary order), and the memory layout; the
        guest kernel's random numbers (os.urandom) come from the host at each read and need no seed.
        """
        self._reactor, self._box, self._done = reactor, box, done
        self._nonce = wire.NO_NONCE if op is None else os.urandom(wire.NONCE_BYTES)
        self._replies = wire.Replies(REPLY_BYTES)
        self._received = 0
        self._timer = reactor.after(seconds, lambda: self._end(f"no answer for {seconds:g} s"))
        reactor.watch(box.replies, selectors.EVENT_READ, self._receive)
        if op is not None:
            body = os.urandom(SEEDS) if op is Op.RESEED else b""
            try:
                os.write(box.requests, wire.pack_request(self._nonce, op, 0, body))  # it fits in any empty pipe
            except OSError as error:
                problem = f"cannot send a request: {error}"
                reactor.call(lambda: self._end(problem))

    def give_up(self) -> None:
        """Ends the exchange with the error that the broker ended the sandbox, unless the callback has run."""
        self._end("ended by the broker")

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
            self._end(f"invalid answer: {error}")
            return
        if not data:
            self._end("ended immediately")
        elif replies:
            self._end("" if self._received == wire.REPLY.size and self._is_right(replies[0]) else "invalid answer")

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
        reason = f"{problem}; its output: {complaint!r}" if complaint else problem
        text = f"sandbox {self._box.id} did not become ready: {reason}"
        self._done(InfrastructureError(text, hint=HINT))
