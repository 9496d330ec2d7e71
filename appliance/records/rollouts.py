"""A rollout says what the agent did: messages of tokens and tool calls.

What a model or a guest wrote is in them as data (`ToolCall.code`, `ToolCall.output`, `Rollout.answer`): hostile text,
to be escaped wherever it is shown.
"""

from __future__ import annotations

import json
from enum import StrEnum
from itertools import pairwise
from typing import Any

from pydantic import Field, model_validator

from appliance.records.record import Record
from runtime.sandbox import Tier, Usage


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolStatus(StrEnum):
    """Says how a tool call ended: the runtime's statuses, and two for calls that never reached a sandbox."""

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
        """Says whether GRPO-RoC counts the call as failed (2508.20722, section 2.2.3)."""
        return self is not ToolStatus.OK

    @property
    def ran(self) -> bool:
        """Says whether any code of the call was run."""
        return self not in (ToolStatus.PARSE_ERROR, ToolStatus.LIMIT, ToolStatus.CALLS)


class ToolCall(Record):
    code: str = ""
    """Of a call of `python`; of one that could not be read, what the model wrote."""
    tool: str = "python"
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Of a call of another tool: plain JSON."""
    status: ToolStatus
    output: str = ""
    error: str = ""
    seconds: float = 0.0
    tier: Tier | None = None
    sandbox: str = ""
    """Identity of the sandbox that ran it; empty only for a call that was never run."""

    @property
    def asks_world(self) -> bool:
        """Says whether it was made of the task's world."""
        return self.tool != "python"

    @property
    def asked(self) -> str:
        """Says what was called, as people read it: the code, or the tool with its arguments in JSON."""
        return f"{self.tool} {json.dumps(self.arguments, ensure_ascii=False)}" if self.asks_world else self.code


class WeightSpan(Record):
    """Names the version of the weights that drew a run of a message's tokens."""

    version: str
    """A checkpoint's digest, or `<cycle>@<step>` while training."""
    start: int
    end: int
    """Indices into the message's `ids`, the end not included."""


class Message(Record):
    """Is a node of the message graph: a run of tokens that the policy model sampled or that was forced on it."""

    parent: int | None
    """Index of the node before it. None for the first, and for one that begins a new training sample: its tokens are
    the conversation so far, written anew for the model. A path from such a node is what the model read."""
    role: Role
    ids: tuple[int, ...]
    sampled: bool
    """True for the policy model's own tokens: the only ones that are trained on."""
    logprobs: tuple[float, ...] = ()
    """One for each token of a sampled node, under the distribution it was drawn from."""
    weights: tuple[WeightSpan, ...] = ()
    """Who drew the tokens of a sampled node: spans in order, without gaps."""
    call: ToolCall | None = None
    """On tool nodes: the call whose result these tokens show."""


class RolloutEnd(StrEnum):
    ANSWERED = "answered"
    """The last turn called no tool. Whether it holds an answer is another matter."""
    TOKENS = "tokens"
    TURNS = "turns"
    INFRA_ERROR = "infra_error"


class Purpose(StrEnum):
    TRAIN = "train"
    VALIDATION = "validation"
    EVALUATION = "evaluation"
    JOB = "job"


class Rollout(Record):
    id: str
    """Unique for (cycle, purpose, step, task, sample): the ledger refuses to count one twice."""
    cycle: str
    step: int
    task: str
    sample: int
    purpose: Purpose
    temperature: float
    nodes: tuple[Message, ...]
    ended: RolloutEnd
    answer: str | None
    """The final answer's text when the last turn holds exactly one."""
    answers: int
    """How many final answers the last turn holds; anything but one earns nothing."""
    seconds: float
    usage: Usage = Usage()
    """What its session used; all zeros where it ran nothing."""
    branch_of: str | None = None
    """The rollout that it left to go on from an earlier state; None for one that began at the question."""
    branch_at: int = 0
    """Its first node of its own: those before are the other rollout's, and were sampled there."""
    branch_token: int = 0
    """Of that node, the first token of its own: it may have left in the middle of a turn."""

    @model_validator(mode="before")
    @classmethod
    def _spans_of_earlier_versions(cls, data: Any) -> Any:
        """A rollout of an earlier version names one version of the weights, which drew all that was sampled."""
        if not isinstance(data, dict) or "weights" not in data:
            return data
        data = {**data, "nodes": [*data.get("nodes", ())]}
        version = data.pop("weights")
        for place, node in enumerate(data["nodes"]):
            if isinstance(node, dict) and node.get("sampled"):
                span = {"version": version, "start": 0, "end": len(node["ids"])}
                data["nodes"][place] = {**node, "weights": [span]}
        return data

    @property
    def versions(self) -> tuple[str, ...]:
        """Lists those of the weights that drew its tokens, each once, in the order in which they came."""
        return tuple(dict.fromkeys(span.version for node in self.nodes for span in node.weights))

    @property
    def weights(self) -> str:
        """Names the version that drew its last token; empty where none was drawn."""
        return self.versions[-1] if self.versions else ""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(node.call for node in self.nodes if node.call is not None)

    @property
    def own_calls(self) -> tuple[ToolCall, ...]:
        """Lists those that were made for it; a branch has others from the rollout that it left."""
        return tuple(node.call for node in self.nodes[self.branch_at :] if node.call is not None)

    @property
    def failed_calls(self) -> int:
        return sum(call.status.failed for call in self.calls)

    @property
    def turns(self) -> int:
        return sum(node.role is Role.ASSISTANT for node in self.nodes)

    @property
    def samples(self) -> tuple[tuple[Message, ...], ...]:
        """Splits the nodes into training samples: each is a sequence of tokens that the model read as it stands."""
        starts = [place for place, node in enumerate(self.nodes) if node.parent is None]
        return tuple(self.nodes[start:end] for start, end in pairwise([*starts, len(self.nodes)]))

    @property
    def tokens(self) -> int:
        return sum(len(node.ids) for node in self.nodes)

    @property
    def pruned(self) -> bool:
        """Says whether its tokens and the words of its calls were dropped (`appliance.ledger.retention`); of one that
        never began there was nothing to drop, and earlier versions dropped all nodes."""
        return not self.tokens

    @property
    def sampled_tokens(self) -> int:
        """Counts those that were drawn for it; what a branch has from its beginnings is counted there."""
        return sum(len(ids) for ids in self.own_turns)

    @property
    def own_turns(self) -> tuple[tuple[int, ...], ...]:
        """Lists the tokens that were drawn for it, turn by turn; those of a branch begin where it left."""
        return tuple(
            node.ids[self.branch_token :] if place == self.branch_at else node.ids
            for place, node in enumerate(self.nodes)
            if node.sampled and place >= self.branch_at
        )

    @property
    def branch_turn(self) -> int:
        """Numbers the turn, from 1, that is the first with tokens of its own."""
        return 1 + sum(node.role is Role.ASSISTANT for node in self.nodes[: self.branch_at])

    @property
    def shared_tokens(self) -> int:
        """Counts those that a branch has from the rollout that it left, and that were not drawn again."""
        return sum(len(node.ids) for node in self.nodes if node.sampled) - self.sampled_tokens


class PartialRollout(Record):
    """Is what there is of a rollout that has not ended."""

    id: str
    cycle: str
    step: int
    nodes: tuple[Message, ...]
    """Whole ones, in the order in which they came."""
    begun: Message | None = None
    """What was sampled of the turn under way."""

    @property
    def drawn(self) -> tuple[Message, ...]:
        """Lists all of it, the turn under way among it."""
        return self.nodes if self.begun is None else (*self.nodes, self.begun)
