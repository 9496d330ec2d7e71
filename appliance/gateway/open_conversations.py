"""Sessions that can be continued token by token, in memory, found by the conversation so far.

What always holds: a conversation that goes on in two ways is two sessions; how many there are, and their tokens, are
bounded. One that was forgotten begins anew, as a branch of the session on disk that has its turns: which one that is is
remembered for longer, whatever tools and model it goes on with, so that a session that was deleted does not come back.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from appliance.gateway.chat_request import ClientTool, SentMessage
from appliance.records.rollouts import Message
from appliance.rendering.renderer import Ids, OwnTurn

MOST_LIVE = 256
MOST_LIVE_TOKENS = 8 << 20
MOST_WRITTEN = 1 << 16
"""Conversations whose session is remembered without their tokens."""


@dataclass(frozen=True)
class OpenConversation:
    """A session up to a turn of the model."""

    id: str
    version: str
    nodes: tuple[Message, ...]
    turns: tuple[OwnTurn, ...]
    """The model's, in order."""
    places: tuple[int, ...]
    """Which messages of the conversation they are."""
    calls: bool
    """Whether the last turn asked for a tool."""
    created: str
    recorded: bool
    """Whether it was written to disk."""
    branch_of: str = ""
    """The session on disk that it left, if it left one."""

    @property
    def tokens(self) -> int:
        return sum(len(node.ids) for node in self.nodes)

    @property
    def context(self) -> Ids:
        """The tokens of the newest sample: what the model has read and written."""
        start = max(place for place, node in enumerate(self.nodes) if node.parent is None)
        return tuple(token for node in self.nodes[start:] for token in node.ids)


@dataclass
class OpenConversations:
    """Methods may be called from any thread."""

    _known: OrderedDict[str, OpenConversation] = field(default_factory=OrderedDict)
    _continued: set[str] = field(default_factory=set)
    """Those of `_known` that went on already."""
    _written: OrderedDict[str, str] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, key: str) -> OpenConversation | None:
        """The session with that conversation; under a new id where it went on already in another way."""
        with self._lock:
            found = self._known.get(key)
            if found is None:
                return None
            self._known.move_to_end(key)
            if key in self._continued:
                left = found.id if found.recorded else found.branch_of
                return replace(found, id=new_id(), recorded=False, branch_of=left)
            self._continued.add(key)
            return found

    def put(self, key: str, session: OpenConversation) -> None:
        with self._lock:
            self._known[key] = session
            while len(self._known) > MOST_LIVE or sum(one.tokens for one in self._known.values()) > MOST_LIVE_TOKENS:
                self._continued.discard(self._known.popitem(last=False)[0])

    def wrote(self, turns: Sequence[str], session: str) -> None:
        """Remembers, by `turn_keys`, which session has that conversation; the newest one counts."""
        with self._lock:
            self._written[turns[-1]] = session
            self._written.move_to_end(turns[-1])
            while len(self._written) > MOST_WRITTEN:
                self._written.popitem(last=False)

    def written(self, turns: Sequence[str]) -> str:
        """The session with the longest of these beginnings of a conversation; empty where none is known."""
        with self._lock:
            return next((self._written[key] for key in reversed(turns) if key in self._written), "")


def new_id() -> str:
    return f"gs-{secrets.token_hex(8)}"


def key_of(token: str, tools: Sequence[ClientTool], messages: Sequence[SentMessage]) -> str:
    """Names a conversation: the same token, tools and messages, whatever else a client writes beside them."""
    said = [token, [one.model_dump() for one in tools], [one.identity for one in messages]]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def turn_keys(token: str, messages: Sequence[SentMessage]) -> list[str]:
    """Names a conversation up to each turn of the model's, by the same token, whatever tools there are; ascending."""
    found, so_far = [], hashlib.sha256(token.encode())
    for one in messages:
        so_far.update(json.dumps(one.identity).encode() + b"\n")
        if one.role == "assistant":
            found.append(so_far.hexdigest())
    return found
