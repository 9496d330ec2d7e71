"""Keeps one conversation with the policy model as the tokens that it was, and says what its next input is.

What always holds. What was sampled is kept as it was sampled and is never tokenised again. The input of a turn is the
one before with the turn and what is forced behind it: tokens are only added. Where the model's format cannot write a
result so, a new training sample begins: the conversation is written anew as the prompt of what follows, all of it
forced, and its node has no parent. So each path from a node without parent is a sequence of tokens that the model
really read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from appliance.inference.engine import Turn
from appliance.records.rollouts import Message, Role, ToolCall
from appliance.rendering.markers import TextMessage
from appliance.rendering.renderer import ChatMessage, Ids, Malformed, OwnTurn, Renderer, ToolRequest
from appliance.rendering.tools import tools_of
from curriculum.contract.environment import ToolSchema
from curriculum.contract.task import Task


@dataclass
class Conversation:
    renderer: Renderer
    tools: tuple[ToolSchema, ...]
    messages: tuple[ChatMessage, ...]
    """What was said, as it would be written anew."""
    nodes: list[Message] = field(default_factory=list)
    ids: Ids = ()
    """What the model reads now."""

    @classmethod
    def begin(cls, renderer: Renderer, task: Task) -> Conversation:
        """Begins one with a task. Raises RenderingError for one that the model's format cannot write."""
        made = cls(renderer, tools_of(task), tuple(task.messages))
        made._begin(Role.USER, None)
        return made

    @property
    def samples(self) -> int:
        """Counts the training samples that it has begun."""
        return sum(node.parent is None for node in self.nodes)

    def take(self, turn: Turn) -> ToolRequest | Malformed | str:
        """Adds a turn that was sampled, and reads it."""
        before = self.ids
        self._add(
            Message(
                parent=len(self.nodes) - 1,
                role=Role.ASSISTANT,
                ids=turn.ids,
                sampled=True,
                logprobs=turn.logprobs,
                weights=turn.weights,
            )
        )
        self.messages = (*self.messages, OwnTurn(turn.ids, before))
        return self.renderer.read(turn.ids, before, self.tools) if turn.ended == "stop" else ""

    def give_back(self, call: ToolCall, text: str) -> Ids | None:
        """Adds the result of the last turn's call, as the model sees it. Returns what is forced behind that turn; None
        where a new training sample begins, whose prompt is `ids`. Raises RenderingError as `begin`."""
        turn = self.nodes[-1].ids
        forced = self.renderer.follow(self.ids[: len(self.ids) - len(turn)], turn, text, self.tools)
        self.messages = (*self.messages, TextMessage(text, "tool"))
        if forced is None:
            self._begin(Role.TOOL, call)
        else:
            self._add(Message(parent=len(self.nodes) - 1, role=Role.TOOL, ids=forced, sampled=False, call=call))
        return forced

    def copy(self) -> Conversation:
        """The same conversation, to go on with in another way."""
        return replace(self, nodes=list(self.nodes))

    def before_last_turn(self) -> Conversation:
        """A conversation that goes on as if the last turn, which is its last node, had not been."""
        return replace(
            self,
            messages=self.messages[:-1],
            nodes=self.nodes[:-1],
            ids=self.ids[: len(self.ids) - len(self.nodes[-1].ids)],
        )

    def _begin(self, role: Role, call: ToolCall | None) -> None:
        self.ids = ()
        prompt = self.renderer.prompt(self.messages, self.tools)
        self._add(Message(parent=None, role=role, ids=prompt, sampled=False, call=call))

    def _add(self, node: Message) -> None:
        self.nodes.append(node)
        self.ids += node.ids
