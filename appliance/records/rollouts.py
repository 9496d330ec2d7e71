"""Rollouts: the agent's messages as tokens, and its tool calls.

Text from a model or a guest (`ToolCall.code`, `ToolCall.output`, `Rollout.answer`) is hostile data, to be escaped
wherever it is shown.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer

from appliance.records.record import Record
from runtime.sandbox import Tier, Usage


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolStatus(StrEnum):
    """Result of a tool call: the runtime's statuses, and two for calls that never reached a sandbox."""

    OK = "ok"
    EXCEPTION = "exception"
    TIMEOUT = "timeout"
    CPU = "cpu"
    EXPIRED = "expired"
    MEMORY = "memory"
    PIDS = "pids"
    DISK = "disk"
    FILES = "files"
    OUTPUT = "output"
    CALLS = "calls"
    DIED = "died"
    PARSE_ERROR = "parse_error"
    LIMIT = "limit"

    @property
    def failed(self) -> bool:
        """True if GRPO-RoC counts the call as failed (2508.20722, section 2.2.3)."""
        return self is not ToolStatus.OK

    @property
    def ran(self) -> bool:
        """True if any code of the call ran."""
        return self not in (ToolStatus.PARSE_ERROR, ToolStatus.LIMIT, ToolStatus.CALLS)


class ToolCall(Record):
    code: str = ""
    """Code of a `python` call; the model's raw text for an unparsable call."""
    tool: str = "python"
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Arguments of a call of another tool, as plain JSON."""
    status: ToolStatus
    output: str = ""
    error: str = ""
    seconds: float = 0.0
    tier: Tier | None = None
    sandbox: str = ""
    """Identity of the sandbox that ran it; empty only for a call that never ran."""

    @property
    def asks_world(self) -> bool:
        """True if the call uses a tool of the task's world instead of Python."""
        return self.tool != "python"

    @property
    def asked(self) -> str:
        """Text of a tool call for people: the code, or the tool with its arguments in JSON."""
        return f"{self.tool} {json.dumps(self.arguments, ensure_ascii=False)}" if self.asks_world else self.code


class WeightSpan(Record):
    """Version of the weights that drew a run of a message's tokens."""

    version: str
    """A checkpoint's digest, or `<cycle>@<step>` while training."""
    start: int
    end: int
    """End index (exclusive) into the message's `ids`."""


MOST_ROUTES = 1 << 27
"""Maximum bytes of a message's routes: over 300,000 tokens of 48 layers with 8 chosen experts each."""


def _decoded(value: object) -> object:
    return b64decode(value, validate=True) if isinstance(value, str) else value


def _encoded(routes: bytes) -> str:
    return b64encode(routes).decode()


class Message(Record):
    """Node of the message graph: tokens that the policy model sampled, or that were given to it."""

    parent: int | None
    """Index of the previous node. None for the first, and for a node that begins a new training sample: its tokens are
    the conversation so far, rendered anew. A path from such a node is what the model read."""
    role: Role
    ids: tuple[int, ...]
    sampled: bool
    """True for the policy model's own tokens: the only ones that are trained on."""
    logprobs: tuple[float, ...] = ()
    """Log-probability of each token of a sampled node, under the distribution it was drawn from."""
    weights: tuple[WeightSpan, ...] = ()
    """Weights that drew the tokens of a sampled node: spans in order, without gaps."""
    call: ToolCall | None = None
    """Tool call whose result these tokens show; tool nodes only."""
    routes: Annotated[bytes, BeforeValidator(_decoded), PlainSerializer(_encoded, when_used="json")] = Field(
        b"", max_length=MOST_ROUTES, exclude_if=lambda routes: not routes
    )
    """Experts that a mixture chose in the pass before each token (`Turn.routes`), without a sample's first token; in
    base64 as JSON. Empty if unknown."""
    why: str = Field("", exclude_if=lambda why: not why)
    """Reason why a sampled node is not trained on; empty if it is."""

    @property
    def trains(self) -> bool:
        """True for a node that training learns from."""
        return self.sampled and not self.why


def paths(nodes: Sequence[Message]) -> list[tuple[int, ...]]:
    """Returns the paths of a message graph from a root to each leaf, depth first, as indices of nodes. Raises
    ValueError for a node before its parent."""
    after: dict[int | None, list[int]] = {}
    for place, node in enumerate(nodes):
        if node.parent is not None and not 0 <= node.parent < place:
            raise ValueError(f"node {place} does not follow its parent {node.parent}")
        after.setdefault(node.parent, []).append(place)
    found, left = [], after.get(None, [])[::-1]
    while left:
        place = left.pop()
        left += after.get(place, [])[::-1]
        if place not in after:
            found.append(path_to(nodes, place))
    return found


def path_to(nodes: Sequence[Message], node: int | None) -> tuple[int, ...]:
    """Returns the path of a message graph from a root to a node, as indices; empty for None."""
    path = []
    while node is not None:
        path.append(node)
        node = nodes[node].parent
    return tuple(reversed(path))


class RolloutEnd(StrEnum):
    ANSWERED = "answered"
    """The last turn called no tool; it may or may not contain an answer."""
    TOKENS = "tokens"
    TURNS = "turns"
    INFRA_ERROR = "infra_error"


UNSOLVABLE_RUN, REFUSAL_RUN = 4, 5
"""Runs of an evaluation in which the candidate gets unsolvable questions, and requests it must refuse, each with its
own checks: steps of their rollouts."""


class Purpose(StrEnum):
    TRAIN = "train"
    VALIDATION = "validation"
    EVALUATION = "evaluation"
    JOB = "job"


class Rollout(Record):
    id: str
    """Unique for (cycle, purpose, step, task, sample): the ledger refuses to count a rollout twice."""
    cycle: str
    step: int
    task: str
    sample: int
    purpose: Purpose
    temperature: float
    nodes: tuple[Message, ...]
    ended: RolloutEnd
    answer: str | None
    """Text of the final answer if the last turn has exactly one."""
    answers: int
    """Number of final answers in the last turn; only one can earn a reward."""
    seconds: float
    usage: Usage = Usage()
    """Resources used by its session; all zeros if it ran nothing."""
    branch_of: str | None = None
    """Rollout that it branched from at an earlier state; None if it began at the question."""
    branch_at: int = 0
    """First own node: the nodes before were sampled in the other rollout."""
    branch_token: int = 0
    """First own token of that node: a branch may begin in the middle of a turn."""

    @property
    def is_probe(self) -> bool:
        """True if an evaluation asked an unsolvable question, or a request that must be refused."""
        return self.purpose is Purpose.EVALUATION and self.step in (UNSOLVABLE_RUN, REFUSAL_RUN)

    @property
    def versions(self) -> tuple[str, ...]:
        """Versions of the weights that sampled a rollout's tokens, in order of first use."""
        return tuple(dict.fromkeys(span.version for node in self.nodes for span in node.weights))

    @property
    def weights(self) -> str:
        """Version of the weights that sampled the rollout's last token; empty if none was sampled."""
        return self.versions[-1] if self.versions else ""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(node.call for node in self.nodes if node.call is not None)

    @property
    def own_calls(self) -> tuple[ToolCall, ...]:
        """Tool calls made for this rollout; a branch also contains calls of the rollout it left."""
        return tuple(node.call for node in self.nodes[self.branch_at :] if node.call is not None)

    @property
    def failed_calls(self) -> int:
        return sum(call.status.failed for call in self.calls)

    @property
    def turns(self) -> int:
        return sum(node.role is Role.ASSISTANT for node in self.nodes)

    @property
    def samples(self) -> tuple[tuple[Message, ...], ...]:
        """Training samples of the rollout: sequences of nodes whose tokens the model read as they stand."""
        return tuple(tuple(self.nodes[place] for place in path) for path in paths(self.nodes))

    @property
    def tokens(self) -> int:
        return sum(len(node.ids) for node in self.nodes)

    @property
    def pruned(self) -> bool:
        """True if the rollout's tokens and the texts of its calls were dropped (`appliance.ledger.sqlite_rollouts`), or
        it never began. Earlier versions dropped all nodes."""
        return not self.tokens

    @property
    def sampled_tokens(self) -> int:
        """Number of tokens sampled for this rollout; those that a branch inherited count in the rollout it left."""
        return sum(len(ids) for ids in self.own_turns)

    @property
    def own_turns(self) -> tuple[tuple[int, ...], ...]:
        """Tokens sampled for this rollout, turn by turn; a branch's begin where it left."""
        return tuple(
            node.ids[self.branch_token :] if place == self.branch_at else node.ids
            for place, node in enumerate(self.nodes)
            if node.sampled and place >= self.branch_at
        )

    @property
    def branch_turn(self) -> int:
        """Number, from 1, of the first turn with tokens of the rollout's own."""
        return 1 + sum(node.role is Role.ASSISTANT for node in self.nodes[: self.branch_at])

    @property
    def shared_tokens(self) -> int:
        """Number of sampled tokens that a branch inherited from the rollout it left."""
        return sum(len(node.ids) for node in self.nodes if node.sampled) - self.sampled_tokens


class PartialRollout(Record):
    """A rollout that has not ended."""

    id: str
    cycle: str
    step: int
    nodes: tuple[Message, ...]
    """Complete nodes, in order."""
    begun: Message | None = None
    """Tokens sampled so far in the current turn."""

    @property
    def drawn(self) -> tuple[Message, ...]:
        """All nodes of an unfinished rollout, the current turn included."""
        return self.nodes if self.begun is None else (*self.nodes, self.begun)
