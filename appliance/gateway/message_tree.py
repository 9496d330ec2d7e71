"""Sessions as trees of tokens, and the sampled turn that a client's messages continue.

Each node has tokens that the model read or drew, behind those of its parent; a path from a root to a leaf is a training
sample. Invariants: nodes are only appended, so an index stays valid; the tokens of a path are exactly what the engine
read and drew. Messages only select a node to continue, so a forged history gets its own root and never another path's
tokens. Of several equal turns a client continues the one with its call ids, else one that nobody continued.

Live trees and their tokens are bounded. The session of a turn is remembered longer, across models, so that a deleted
session does not come back as a new one.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from appliance.records.rollouts import Message, path_to
from appliance.rendering.renderer import Ids, OwnTurn

MOST_LIVE = 256
MOST_LIVE_TOKENS = 8 << 20
MOST_WRITTEN = 1 << 16
"""Maximum number of conversations whose session is remembered without tokens."""
MOST_EQUAL = 64
"""Maximum turns remembered for equal conversations."""
MOST_PENDING = 64
"""Newest calls without a result that may have started a sub-agent."""
MOST_QUOTES = 16
"""Maximum texts remembered of one turn."""
QUOTE = 32
"""Least characters of a text by which another conversation is recognised."""


@dataclass(frozen=True)
class History:
    """Digests of a client's messages, the newest last."""

    token: str
    """Hash of the token that sent them; another token may reuse a name."""
    messages: tuple[bytes, ...]
    """Digest of each message alone."""
    so_far: tuple[bytes, ...]
    """Digest of the conversation up to each message, inclusive."""
    calls: Mapping[int, tuple[str | None, ...]]
    """Ids of the calls in each message of the assistant, by its place."""
    question: str
    """First message of the user."""


@dataclass(frozen=True)
class SampledTurn:
    """A turn that the model drew, as its client has it."""

    message: bytes
    so_far: bytes
    tools: bytes
    """Digest of the tools that were offered."""
    calls: tuple[str | None, ...]
    quotes: tuple[str, ...]
    """Long texts in its call or answer."""
    whole: bool
    """False if the client has less of the turn than its tokens."""
    subagent: bool
    node: int = -1


@dataclass
class MessageTree:
    """A session: nodes of tokens, with the turns among them."""

    token: str
    version: str
    created: str
    branch_of: str = ""
    """Stored session that it restarts, if any."""
    id: str = field(default_factory=lambda: f"gs-{secrets.token_hex(8)}")
    recorded: bool = False
    """True if the session was written to disk."""
    rule: int | None = None
    """Number of the redaction rule that matched."""
    rewritten: bool = False
    """True if a history without its first question was recognised as this session."""
    nodes: list[Message] = field(default_factory=list)
    turns: dict[int, SampledTurn] = field(default_factory=dict)
    newest: dict[bytes, int] = field(default_factory=dict)
    """Newest node with a turn, by the digest of its message."""
    prompts: dict[bytes, bool] = field(default_factory=dict)
    """Digests of the conversations at its roots; True for a sub-agent's."""
    continued: set[int] = field(default_factory=set)
    tokens: int = 0

    def context(self, node: int | None) -> Ids:
        """Returns the tokens from the root to a node, inclusive."""
        return tuple(token for place in path_to(self.nodes, node) for token in self.nodes[place].ids)

    def own_turn(self, node: int) -> OwnTurn:
        return OwnTurn(self.nodes[node].ids, self.context(self.nodes[node].parent))

    def shared(self, ids: Ids, node: int | None) -> int | None:
        """Returns the last node on the path to `node` whose context begins `ids`, which are longer; None without."""
        found, at = None, 0
        for place in path_to(self.nodes, node):
            end = at + len(own := self.nodes[place].ids)
            if end >= len(ids) or ids[at:end] != own:
                break
            found, at = place, end
        return found

    def add(self, forced: Message, sampled: Message) -> int:
        """Appends the forced tokens of a request, unless they are there, and the turn behind them; returns its node."""
        alike = (
            place
            for place, node in enumerate(self.nodes)
            if node.parent == forced.parent and not node.sampled and node.ids == forced.ids
        )
        parent = next(alike, len(self.nodes))
        new = [forced] if parent == len(self.nodes) else []
        self.nodes += [*new, sampled.model_copy(update={"parent": parent})]
        self.tokens += sum(len(node.ids) for node in (*new, sampled))
        return len(self.nodes) - 1


@dataclass(frozen=True)
class Continuation:
    """The session that a history belongs to, and the turn that it continues."""

    tree: MessageTree | None = None
    turn: SampledTurn | None = None
    """Newest turn of the session in the history."""
    place: int = -1
    """Place of that turn among the messages, if nothing before was rewritten; -1 if the history begins a root."""
    own: Mapping[int, SampledTurn] = field(default_factory=dict)
    """Turns of the session in the history, by place."""
    subagent: bool = False
    branch_of: str = ""
    """Stored session with these turns, if the history begins a new one."""


class OpenSessions:
    """Gateway sessions in memory that can be continued; thread-safe."""

    def __init__(self) -> None:
        self._live: OrderedDict[str, MessageTree] = OrderedDict()
        self._turns: OrderedDict[bytes, deque[tuple[str, int]]] = OrderedDict()
        """Sessions and nodes of turns, by conversation."""
        self._lock = threading.Lock()

    def find(self, history: History, version: str, *, alone: bool) -> Continuation:
        """Returns the session that a history continues with the model `version`. Without a common turn, it is that of
        the only session whose long turns or first question the history kept, or unless `alone` of the only one with a
        pending call that asks this question."""
        with self._lock:
            for place in sorted(history.calls, reverse=True):
                known = self._turns.get(history.so_far[place], ())
                trees = [(tree, node) for name, node in known if (tree := self._live.get(name)) is not None]
                if fitting := [(tree, tree.turns[node]) for tree, node in trees if tree.version == version]:
                    tree, turn = max(
                        reversed(fitting),
                        key=lambda one: (one[1].calls == history.calls[place], one[1].node not in one[0].continued),
                    )
                    tree.continued.add(turn.node)
                    self._live.move_to_end(tree.id)
                    return self._continuation(history, tree, turn, place, subagent=turn.subagent)
                if trees:
                    tree, _ = trees[-1]
                    return Continuation(branch_of=tree.id if tree.recorded else tree.branch_of)
                if known:
                    return Continuation(branch_of=known[-1][0])
            return self._joined(history, version, alone=alone)

    def _joined(self, history: History, version: str, *, alone: bool) -> Continuation:
        trees = [tree for tree in self._live.values() if (tree.token, tree.version) == (history.token, version)]
        sent = [history.messages[place] for place in history.calls]

        def kept_turns(tree: MessageTree) -> int:
            nodes = [tree.newest[digest] for digest in sent if digest in tree.newest]
            return sum(bool(tree.turns[node].quotes) for node in nodes)

        def kept_question(tree: MessageTree) -> int:
            return all(digest in tree.newest for digest in sent) and any(
                digest in tree.prompts for digest in history.so_far[:-1]
            )

        if (tree := _only(trees, kept_turns)) is not None:
            turn = tree.turns[max(tree.newest[digest] for digest in sent if digest in tree.newest)]
            tree.rewritten |= not turn.subagent and not kept_question(tree)
            return self._continuation(history, tree, turn, -1, subagent=turn.subagent)
        if (tree := _only(trees, kept_question)) is not None:
            subagent = any(tree.prompts.get(digest, False) for digest in history.so_far)
            return self._continuation(history, tree, None, -1, subagent=subagent)
        pending = (
            (tree, turn)
            for tree in reversed(trees)
            for node, turn in reversed(tree.turns.items())
            if turn.calls and node not in tree.continued
        )
        newest = [] if alone or sent else list(islice(pending, MOST_PENDING))
        asking = [tree for tree, turn in newest if any(_quoted(history.question, quote) for quote in turn.quotes)]
        if (tree := _only(trees, lambda tree: any(one is tree for one in asking))) is not None:
            return self._continuation(history, tree, None, -1, subagent=True)
        return Continuation()

    def _continuation(
        self, history: History, tree: MessageTree, turn: SampledTurn | None, place: int, *, subagent: bool
    ) -> Continuation:
        path = set(path_to(tree.nodes, None if turn is None else turn.node))
        own = {}
        for at in history.calls:
            nodes = [node for name, node in self._turns.get(history.so_far[at], ()) if name == tree.id]
            if not nodes and history.messages[at] in tree.newest:
                nodes = [tree.newest[history.messages[at]]]
            if nodes:
                own[at] = tree.turns[max(nodes, key=lambda node: (node in path, node))]
        return Continuation(tree, turn, place, own, subagent)

    def add(
        self,
        tree: MessageTree,
        match: Continuation,
        history: History,
        forced: Message,
        sampled: Message,
        turn: SampledTurn,
    ) -> SampledTurn:
        """Appends the answer to a history to its session, which can then be continued there. Returns the turn with its
        node."""
        with self._lock:
            turn = replace(turn, node=tree.add(forced, sampled))
            tree.turns[turn.node] = turn
            tree.newest[turn.message] = turn.node
            if match.place < 0:
                tree.prompts[history.so_far[-1]] = turn.subagent
            self._turns.setdefault(turn.so_far, deque(maxlen=MOST_EQUAL)).append((tree.id, turn.node))
            self._turns.move_to_end(turn.so_far)
            while len(self._turns) > MOST_WRITTEN:
                self._turns.popitem(last=False)
            self._live[tree.id] = tree
            self._live.move_to_end(tree.id)
            while len(self._live) > MOST_LIVE or sum(one.tokens for one in self._live.values()) > MOST_LIVE_TOKENS:
                self._live.popitem(last=False)
            return turn

    def set_aside(self, name: str, node: int, why: str) -> None:
        """Notes why a turn of an open session is not trained on."""
        with self._lock:
            if (tree := self._live.get(name)) is not None:
                tree.nodes[node] = tree.nodes[node].model_copy(update={"why": tree.nodes[node].why or why})

    def forget(self, tree: MessageTree) -> None:
        """Removes a session that is not kept: a continuation begins a new one, which is written only if this one still
        is on disk."""
        with self._lock:
            self._live.pop(tree.id, None)


def _only(trees: Sequence[MessageTree], score: Callable[[MessageTree], int]) -> MessageTree | None:
    """Returns the tree with the highest score above 0; None if several have it."""
    scores = [(score(tree), tree) for tree in trees]
    most = max((one for one, _ in scores), default=0)
    best = [tree for one, tree in scores if one == most]
    return best[0] if most and len(best) == 1 else None


def _quoted(question: str, quote: str) -> bool:
    return quote in question or (len(question) >= QUOTE and question in quote)
