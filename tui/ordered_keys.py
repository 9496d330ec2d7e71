"""Keys one after the other: each is dealt with when everything that the one before it did is done.

A program of Textual sends a key on its way as soon as it comes: to the widget that has the focus, up to the program,
which then does what is bound to it. Keys that come faster than a dialog or a line opens would be on the way to the
screen behind it. So a key waits here until the one before it has been dealt with.

What always holds: no key is lost and none overtakes another; each goes to what has the focus after all that was typed
before it. A message follows each key along the same queues, from the widget with the focus to the program. When it has
come twice, and screen and focus are as they were when it left, the key before it does nothing any more.
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
"""Between two looks whether the message that follows a key is gone with the screen that it was in."""


class OrderedKeysApp(App[None]):
    """`holds` may keep keys back for longer; `keys_may_go` says that it would not any more."""

    class Followed(Message):
        """What was sent before it is dealt with."""

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
        """Whether this key, and with it all behind it, is not to be dealt with yet."""
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
        """Sends the message behind what was done; `when` is what it is to find again."""
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
        """A screen that is closed takes the messages in its queues with it."""
        if not self._busy or not self.screen_stack or self._sent_to is None:
            return
        if not any(screen in self._sent_to.ancestors_with_self for screen in self.screen_stack):
            self._follow(self._focus_now())
