"""Delivers keys one at a time: each waits until the previous one has been processed completely.

Textual dispatches a key as soon as it comes: to the focused widget, up to the program, which runs the bound action.
Keys typed faster than a dialog or line opens would reach the screen behind it, so they wait here.

Invariants: no key is lost or reordered; each reaches the widget that has the focus after everything typed before it. A
marker message follows each key through the same queues. When the marker has arrived twice with screen and focus
unchanged, the key before it has no further effect.
"""

from __future__ import annotations

from collections import deque

from textual import events
from textual.app import App
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

LOST_SECONDS = 0.05
"""Interval between checks whether the marker message was lost with a closed screen, in seconds."""


class OrderedKeysApp(App[None]):
    """Textual program that handles each key only after the effects of earlier keys. `holds` may delay keys further;
    `keys_may_go` releases them."""

    class Followed(Message):
        """Marker message: every message sent before it has been processed."""

        def __init__(self, sent: int) -> None:
            super().__init__()
            self.sent = sent

    def __init__(self) -> None:
        super().__init__()
        self._typed: deque[events.Key | events.Paste] = deque()
        self._busy = False
        self._sent = 0
        self._sent_to: Widget | None = None
        self._sent_when: object = None
        self._watch: Timer | None = None

    def holds(self, typed: events.Key | events.Paste) -> bool:
        """True if this typed key, and all keys behind it, must wait."""
        return False

    async def keys_may_go(self) -> None:
        while self._typed and not self._busy and self.screen_stack and not self.holds(self._typed[0]):
            typed = self._typed.popleft()
            text = isinstance(typed, events.Key) and typed.is_printable and isinstance(self.focused, Input)
            self._busy = not text  # a letter in a line that is typed in moves no focus
            await super().on_event(typed)
            if self._busy:
                self._follow(None)

    async def on_event(self, event: events.Event) -> None:
        if not isinstance(event, (events.Key, events.Paste)) or event.is_forwarded:
            await super().on_event(event)
        else:
            self._typed.append(event)
            await self.keys_may_go()

    def _focus_now(self) -> object:
        return self.screen, self.focused

    def _follow(self, when: object) -> None:
        """Sends a marker message behind a key, to learn when its effects are done. `when` is the screen and focus
        expected on its arrival."""
        if not self.screen_stack:  # the program ends
            return
        self._sent += 1
        self._sent_when = when
        self._sent_to = self.focused or self.screen
        self._sent_to.post_message(self.Followed(self._sent))
        if self._watch is None:
            self._watch = self.set_interval(LOST_SECONDS, self._look)
        self._watch.resume()

    async def on_ordered_keys_app_followed(self, message: Followed) -> None:
        if message.sent != self._sent or not self.screen_stack:
            return
        now = self._focus_now()
        if now != self._sent_when:
            self._follow(now)
            return
        self._busy = False
        if self._watch is not None:
            self._watch.pause()
        await self.keys_may_go()

    def _look(self) -> None:
        """Sends the marker message again if the screen that held it was closed together with its queue."""
        if not self._busy or not self.screen_stack or self._sent_to is None:
            return
        if not any(screen in self._sent_to.ancestors_with_self for screen in self.screen_stack):
            self._follow(self._focus_now())
