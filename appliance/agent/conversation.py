"""Stores a conversation as its exact tokens, and computes the model's next input.

Invariants: sampled tokens are kept as sampled and never tokenised again. A turn's input is the previous one plus the
turn and the forced tokens after it: tokens are only appended. If the model's format cannot write a result that way, a
new training sample begins: the conversation is rewritten as a new prompt, all forced, in a node without parent. So each
path from a node without parent is a token sequence that the model really read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from appliance.agent.texts import messages_for_chat
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
    """Messages, as they would be rewritten."""
    nodes: list[Message] = field(default_factory=list)
    ids: Ids = ()
    """Current input of the model."""

    @classmethod
    def begin(cls, renderer: Renderer, task: Task) -> Conversation:
        """Starts a conversation with a task; a chat model is told the answer form. Raises RenderingError if the model's
        format cannot write it."""
        made = cls(renderer, tools_of(task), messages_for_chat(task) if renderer.chat else task.messages)
        made._begin(Role.USER, None)
        return made

    @property
    def samples(self) -> int:
        """Number of training samples begun so far in this conversation."""
        return sum(node.parent is None for node in self.nodes)

    def take(self, turn: Turn) -> ToolRequest | Malformed | str:
        """Appends a sampled turn to the conversation, and parses it: a tool call, a malformed call, or a last turn's
        text. A turn that was cut off gives an empty text."""
        before = self.ids
        given = self.nodes[-1]
        if turn.routes and not (given.sampled or given.routes):
            rows = len(given.ids) - (given.parent is None)  # no pass chose experts before the first token
            read = turn.read[-rows * (len(turn.routes) // len(turn.ids)) :] if rows else b""
            self.nodes[-1] = given.model_copy(update={"routes": read})
        self._add(
            Message(
                parent=len(self.nodes) - 1,
                role=Role.ASSISTANT,
                ids=turn.ids,
                sampled=True,
                logprobs=turn.logprobs,
                weights=turn.weights,
                routes=turn.routes,
            )
        )
        self.messages = (*self.messages, OwnTurn(turn.ids, before))
        return self.renderer.read(turn.ids, before, self.tools) if turn.ended == "stop" else ""

    def give_back(self, call: ToolCall, text: str) -> Ids | None:
        """Appends to the conversation the result of the last turn's call, as shown to the model. Returns the forced
        tokens; None if a new training sample begins, with prompt `ids`. Raises RenderingError as `begin`."""
        turn = self.nodes[-1].ids
        result = TextMessage(text, "tool")
        forced = self.renderer.follow(self.ids[: len(self.ids) - len(turn)], turn, (result,), self.tools)
        self.messages = (*self.messages, result)
        if forced is None:
            self._begin(Role.TOOL, call)
        else:
            self._add(Message(parent=len(self.nodes) - 1, role=Role.TOOL, ids=forced, sampled=False, call=call))
        return forced

    def copy(self) -> Conversation:
        """Returns a copy of the conversation that can continue independently."""
        return replace(self, nodes=list(self.nodes))

    def before_last_turn(self) -> Conversation:
        """Returns the conversation without its last turn, which is its last node."""
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
