"""Sessions in memory that can be continued token by token, found by their conversation so far.

Invariants: a conversation that continues in two ways is two sessions; sessions and their tokens are bounded. A
forgotten session restarts as a branch of the stored session with its turns: that link is remembered longer, across
tools and models, so that a deleted session does not come back.
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
"""Maximum number of conversations whose session id is remembered without tokens."""


@dataclass(frozen=True)
class OpenConversation:
    """A gateway session up to a turn of the model."""

    id: str
    version: str
    nodes: tuple[Message, ...]
    turns: tuple[OwnTurn, ...]
    """The model's turns, in order."""
    places: tuple[int, ...]
    """Indices of these turns among the conversation's messages."""
    calls: bool
    """True if the last turn called a tool."""
    created: str
    recorded: bool
    """True if the session was written to disk."""
    branch_of: str = ""
    """Stored session that it branched from, if any."""

    @property
    def tokens(self) -> int:
        return sum(len(node.ids) for node in self.nodes)

    @property
    def context(self) -> Ids:
        """Tokens that the model has read and written since the conversation was last rendered anew."""
        start = max(place for place, node in enumerate(self.nodes) if node.parent is None)
        return tuple(token for node in self.nodes[start:] for token in node.ids)


@dataclass
class OpenConversations:
    """Gateway sessions in memory that can be continued; thread-safe."""

    _known: OrderedDict[str, OpenConversation] = field(default_factory=OrderedDict)
    _continued: set[str] = field(default_factory=set)
    """Keys of `_known` that were already continued."""
    _written: OrderedDict[str, str] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, key: str) -> OpenConversation | None:
        """Returns the open session with that conversation, under a new id if it was already continued otherwise."""
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
        """Remembers which session has the conversation with these `turn_keys`; the newest counts."""
        with self._lock:
            self._written[turns[-1]] = session
            self._written.move_to_end(turns[-1])
            while len(self._written) > MOST_WRITTEN:
                self._written.popitem(last=False)

    def written(self, turns: Sequence[str]) -> str:
        """Returns the id of the session with the longest of these conversation prefixes; empty if none is known."""
        with self._lock:
            return next((self._written[key] for key in reversed(turns) if key in self._written), "")


def new_id() -> str:
    return f"gs-{secrets.token_hex(8)}"


def key_of(token: str, tools: Sequence[ClientTool], messages: Sequence[SentMessage]) -> str:
    """Returns a conversation's key: the same for equal token, tools and messages, ignoring other fields."""
    said = [token, [one.model_dump() for one in tools], [one.identity for one in messages]]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def turn_keys(token: str, messages: Sequence[SentMessage]) -> list[str]:
    """Returns the conversation's key up to each turn of the model, independent of tools; ascending."""
    found, so_far = [], hashlib.sha256(token.encode())
    for one in messages:
        so_far.update(json.dumps(one.identity).encode() + b"\n")
        if one.role == "assistant":
            found.append(so_far.hexdigest())
    return found
