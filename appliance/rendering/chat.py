"""Renders conversations in chat model formats, with the library `renderers` (Prime Intellect, Apache-2.0).

Invariants: outside text is guarded (`guarded`) before the library sees it; the family `gpt-oss` uses OpenAI's own
encoder, which treats every message as ordinary text. The library's output is never trusted to extend the previous
tokens: it is compared, and a mismatch begins a new training sample. A sampled turn is parsed, and rewritten only at the
head of such a sample. Settings may name only options of the family's template.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from appliance.rendering.guarded import GuardedTokenizer, guard, unguarded
from appliance.rendering.harmony import FIXED_DATE, harmony_vocabulary
from appliance.rendering.renderer import (
    SAY_IT,
    TOOLS,
    ChatMessage,
    Ids,
    Malformed,
    OwnTurn,
    RenderingError,
    ToolRequest,
    TurnParts,
    single_part,
)
from appliance.rendering.tools import arguments_of, declared, map_texts, read_call
from curriculum.contract.environment import ToolSchema
from curriculum.worlds.tool_schema import unusable

log = logging.getLogger(__name__)

FAMILIES: dict[str, dict[str, Any]] = {
    "qwen3": {},
    "qwen3.5": {},
    "qwen3.6": {},
    "qwen3.8": {},
    "llama-3": {},
    "gpt-oss": {"conversation_start_date": FIXED_DATE, "auto_drop_analysis": False},
    "glm-4.5": {},
    "glm-5": {},
    "glm-5.1": {},
    "glm-5.3": {},
    "kimi-k2": {},
    "kimi-k2.5": {},
    "gemma4": {},
    "deepseek-v3": {},
    "deepseek-v4": {},
    "minimax-m2": {},
    "nemotron-3": {},
    "nemotron-3.5": {},
    "hy3": {},
}
"""Families by the library's names, with our default options, which a model's settings may override."""
HARMONY = "gpt-oss"
_ASKED = "1 + 1?"
_THOUGHTS = ("", "I work it out.")
"""Thoughts before a turn written for a model; some formats begin each turn inside its thoughts."""
SPELLED = 4000
"""Characters of marks used to test a format when loaded."""
_TELL = "You can call these tools. Each is described in JSON."
_BROKEN = {
    "invalid_json": "the call is not JSON",
    "unclosed_block": "the call does not end",
    "missing_name": "the call names no tool",
    "unknown_tool": "there is no such tool",
}


class ChatRenderer:
    """Renderer for a model family's chat format in the library `renderers`; see `Renderer`."""

    chat = True

    def __init__(
        self, tokenizer: GuardedTokenizer, family: str, settings: Mapping[str, Any], found: str = "named"
    ) -> None:
        """Creates the renderer of a model family's chat format, and tests its guard. Raises RenderingError if the
        tokenizer lacks the family's tokens, or for an unknown setting."""
        import renderers  # families are loaded on demand

        self.family = family
        self.name = f"{family} ({found})"
        self._tokenizer = tokenizer
        self._guard = str if family == HARMONY else guard
        try:
            options = type(renderers.config_from_name(family))
            config = options.model_validate({**FAMILIES[family], **settings, "name": family})
            make = getattr(renderers, options.__name__.removesuffix("Config"))
            with harmony_vocabulary(tokenizer) if family == HARMONY else nullcontext():
                self._family: Any = make(tokenizer, config)
        except AssertionError as error:
            raise RenderingError(
                f"its tokenizer lacks tokens of the format {family!r}: {_first(error)}", hint=SAY_IT
            ) from error
        except Exception as error:  # the library's own, of many kinds
            why = " ".join(str(error).split())[:200]
            raise RenderingError(f"the format {family!r} cannot be used: {why}", hint=SAY_IT) from error
        stops = tuple(dict.fromkeys(one for one in self._family.get_stop_token_ids() if one is not None))
        self.stop: int = stops[0]
        asked = [{"role": "user", "content": _ASKED}]
        self._tells = self._render(asked, TOOLS, open_turn=True) != self._render(asked, (), open_turn=True)
        self.other_stops: Ids = stops[1:]
        self._calls_first = not self._writes(
            [*asked, {"role": "assistant", "content": "2"}, self._result("x", _NO_CALL)]
        )
        two = [{"type": "function", "id": _call_id(place), "function": _ONE_CALL} for place in range(2)]
        results = [self._result("1", two, place) for place in range(2)]
        self._several = self._writes([*asked, {"role": "assistant", "content": "2", "tool_calls": two}, *results])
        self._prove_guard()

    def refuses(self, tools: Sequence[ToolSchema]) -> str:
        return ""

    def prompt(self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = TOOLS) -> Ids:
        if not messages or messages[-1].role not in ("user", "tool"):
            raise RenderingError("a conversation for the model must end with a user or tool message")
        written = self._messages(messages, tools, ())
        if tools and not self._tells:
            written = _told(written, declared(tools))
        return self._render(written, tools, open_turn=True)

    def question(self, text: str) -> Ids:
        return self._render([{"role": "user", "content": self._guard(text)}], (), open_turn=True)

    def follow(
        self, before: Ids, turn: Ids, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = TOOLS
    ) -> Ids | None:
        calls = self._calls(turn, before, tools)
        new = self._messages(messages, tools, calls)
        told = declared(tools) or None
        try:
            made = self._family.bridge_to_next_turn(list(before), list(turn), new, tools=told)
        except RenderingError:
            raise
        except Exception as error:  # noqa: BLE001 - a turn is arbitrary model output: the conversation is rewritten
            log.warning("the format %s could not continue after a turn: %s", self.family, _first(error))
            return None
        known = before + turn
        if made is None or tuple(made.token_ids[: len(known)]) != known:
            return None
        return tuple(made.token_ids[len(known) :])

    def call(self, code: str) -> Ids:
        return self.request(ToolRequest(code))

    def request(self, request: ToolRequest, tools: Sequence[ToolSchema] = TOOLS) -> Ids:
        function = {"name": request.tool, "arguments": map_texts(arguments_of(request), self._guard)}
        called = [{"type": "function", "id": _call_id(0, request.tool), "function": function}]
        return self._turn({"content": "", "tool_calls": called}, tools)

    def answer(self, text: str) -> Ids:
        return self._turn({"content": self._guard(text)}, ())

    def plain(self, text: str) -> Ids:
        return tuple(self._tokenizer.plain(text))

    def text(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(ids)

    def read(self, turn: Ids, before: Ids = (), tools: Sequence[ToolSchema] = TOOLS) -> ToolRequest | Malformed | str:
        return self._read(self._parse(turn, before, tools), turn, tools)

    def parts(self, turn: Ids, before: Ids = (), tools: Sequence[ToolSchema] = TOOLS) -> TurnParts:
        parsed = self._parse(turn, before, tools)
        text, thoughts = (
            without_marks(self._tokenizer, turn, getattr(parsed, name, None) or "").strip()
            for name in ("content", "reasoning_content")
        )
        written = self._tokenizer.decode(turn[:-1])
        raw = (written.partition("</think>")[2] or written).strip()
        found = [_request(one, tools) for one in parsed.tool_calls] if parsed is not None else []
        calls = tuple(one for one in found if isinstance(one, ToolRequest))
        if calls and len(calls) == len(found) and (len(calls) == 1 or self._several):
            return TurnParts(text, calls, thoughts, raw)
        if found:
            return TurnParts(raw, (), thoughts, raw)
        return single_part(self._read(parsed, turn, tools), thoughts, raw)

    def _read(self, parsed: Any, turn: Ids, tools: Sequence[ToolSchema]) -> ToolRequest | Malformed | str:
        if parsed is None:
            return Malformed(self._tokenizer.decode(turn), "the turn cannot be read")
        if not parsed.tool_calls:
            return without_marks(self._tokenizer, turn, parsed.content)
        if len(parsed.tool_calls) > 1:
            return Malformed(self._tokenizer.decode(turn), "one call at a time")
        return _request(parsed.tool_calls[0], tools)

    def written(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[int]:
        """Renders chat-template messages as tokens, up to the start of the model's turn, without guarding any text."""
        return list(self._family.render_ids(list(messages), tools=list(tools) or None, add_generation_prompt=True))

    def _parse(self, turn: Ids, before: Ids, tools: Sequence[ToolSchema]) -> Any:
        """Parses a model's turn with the library; None if it fails, since a turn is arbitrary model output."""
        told = declared(tools) or None
        try:
            return self._family.parse_response(list(turn), tools=told, prompt_ids=list(before) or None)
        except Exception as error:  # noqa: BLE001 - the library's own, of many kinds
            log.warning("the format %s could not read a turn: %s", self.family, _first(error))
            return None

    def _calls(self, turn: Ids, before: Ids, tools: Sequence[ToolSchema]) -> list[dict[str, Any]]:
        """Returns the tool calls in a model's turn in message form, valid or not; names are text too."""
        parsed = self._parse(turn, before, tools)
        made: list[dict[str, Any]] = []
        for place, one in enumerate(parsed.tool_calls if parsed is not None else ()):
            name = self._text_or(one.name, "python")
            function = {"name": name, "arguments": self._arguments(one)}
            made.append({"type": "function", "id": self._text_or(one.id, _call_id(place, name)), "function": function})
        return made

    def _text_or(self, given: object, otherwise: str) -> str:
        """Returns a text that the model wrote, guarded, or `otherwise` if it is missing or unusable."""
        return self._guard(given) if given and isinstance(given, str) and not unusable(given) else otherwise

    def _arguments(self, call: Any) -> dict[str, Any]:
        told = isinstance(call.arguments, dict) and not unusable(call.arguments)
        given = call.arguments if told else {"code": call.raw}
        guarded: dict[str, Any] = map_texts(given, self._guard)
        return guarded

    def _messages(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema], calls: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Converts messages to the library's form; `calls` are those of the turn before, which results answer in
        order."""
        made: list[dict[str, Any]] = []
        results = 0
        for one in messages:
            made.append(self._message(one, tools, calls, results))
            results += one.role == "tool"
            if one.role == "assistant":
                calls, results = made[-1].get("tool_calls", ()), 0
        return made

    def _message(
        self, message: ChatMessage, tools: Sequence[ToolSchema], last: Sequence[Mapping[str, Any]], place: int
    ) -> dict[str, Any]:
        if isinstance(message, OwnTurn):
            parsed = self._parse(message.ids, message.before, tools)
            said = self._tokenizer.decode(message.ids) if parsed is None else parsed.content
            made: dict[str, Any] = {
                "role": "assistant",
                "content": self._guard(without_marks(self._tokenizer, message.ids, said)),
            }
            if parsed is not None and parsed.reasoning_content:
                made["reasoning_content"] = self._guard(parsed.reasoning_content)
            calls = self._calls(message.ids, message.before, tools)
            return {**made, "tool_calls": calls} if calls else made
        if message.role == "tool":
            return self._result(message.text, last, place)
        if message.role not in ("system", "user", "assistant"):
            raise RenderingError(f"a message with role {message.role!r} cannot be written")
        return {"role": message.role, "content": self._guard(message.text)}

    def _result(self, text: str, calls: Sequence[Mapping[str, Any]], place: int = 0) -> dict[str, Any]:
        """Returns the result of the call at `place` as a message: a tool message, or a user message if the format
        allows no tool message without a call."""
        if not calls and self._calls_first:
            return {"role": "user", "content": self._guard(text)}
        called = (calls or _NO_CALL)[min(place, max(len(calls) - 1, 0))]
        return {
            "role": "tool",
            "content": self._guard(text),
            "tool_call_id": called["id"],
            "name": called["function"]["name"],
        }

    def _render(self, messages: list[dict[str, Any]], tools: Sequence[ToolSchema], *, open_turn: bool) -> Ids:
        try:
            made = self._family.render_ids(messages, tools=declared(tools) or None, add_generation_prompt=open_turn)
        except RenderingError:
            raise
        except Exception as error:  # the library's own, of many kinds
            raise RenderingError(f"a conversation cannot be written: {_first(error)}", hint=SAY_IT) from error
        return tuple(made)

    def _writes(self, messages: list[dict[str, Any]]) -> bool:
        try:
            self._render(messages, TOOLS, open_turn=True)
        except RenderingError:
            return False
        return True

    def _prove_guard(self) -> None:
        """Raises RenderingError if text that spells every special token yields more of them than other text."""
        counts = []
        for text in ("x", "".join(self._tokenizer.marks.values())[:SPELLED]):
            function = {"name": "python", "arguments": {"code": self._guard(text)}}
            calls = [{"type": "function", "id": _call_id(0), "function": function}]
            asked: dict[str, Any] = {"role": "user", "content": self._guard(text)}
            said = [asked, {"role": "assistant", "content": "", "tool_calls": calls}, self._result(text, calls)]
            counts.append(self._tokenizer.count_marks(self._render(said, TOOLS, open_turn=True)))
        if counts[0] != counts[1]:
            raise RenderingError(
                f"in the format {self.family!r} outside text could become a special token", hint=SAY_IT
            )

    def _turn(self, message: dict[str, Any], tools: Sequence[ToolSchema]) -> Ids:
        """Encodes a turn as the model should write it, including its end token."""
        asked: dict[str, Any] = {"role": "user", "content": _ASKED}
        open_turn = self._render([asked], tools, open_turn=True)
        called: Any = message.get("tool_calls")
        back = [self._result("2", called)] if called else []
        for thought in _THOUGHTS:
            own = {"role": "assistant", **message, **({"reasoning_content": thought} if thought else {})}
            whole = self._render([asked, own, *back], tools, open_turn=False)
            if whole[: len(open_turn)] == open_turn:
                turn = whole[len(open_turn) :]
                ends = [at for at, token in enumerate(turn) if token in (self.stop, *self.other_stops)]
                return turn[: ends[0] + 1] if ends else (*turn, self.stop)
        raise RenderingError("this format writes a turn differently from its own prompt", hint=SAY_IT)


def _told(messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the messages with the tools declared in the system message, for a format without a place for them."""
    text = "\n".join([_TELL, *(json.dumps(one["function"]) for one in tools)])
    if messages[0]["role"] == "system":
        return [{"role": "system", "content": f"{text}\n\n{messages[0]['content']}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def _request(call: Any, tools: Sequence[ToolSchema]) -> ToolRequest | Malformed:
    """Validates a call that the library read."""
    if call.status.value != "ok":
        return Malformed(call.raw, _BROKEN.get(call.status.value, "the call is not written in the model's format"))
    return read_call(call.name, call.arguments, call.raw, tools)


def without_marks(tokenizer: GuardedTokenizer, turn: Ids, text: str) -> str:
    """Returns a sampled turn's text without the special tokens in it; those that the model spelled out stay."""
    for mark in {tokenizer.marks[token] for token in turn[:-1] if token in tokenizer.marks}:
        text = text.replace(mark, "")
    return unguarded(text)


def _call_id(place: int, tool: str = "python") -> str:
    """Returns the id of a tool call to which the model gave none, as in Kimi's format; other formats do not show it."""
    return f"functions.{tool}:{place}"


_ONE_CALL = {"name": "python", "arguments": {"code": "1"}}
_NO_CALL: Sequence[Mapping[str, Any]] = ({"id": _call_id(0), "function": {"name": "python"}},)
"""Placeholder call of a result after a turn without one."""


def _first(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
