"""Renders conversations with a model's own chat template, and parses calls in its syntax.

Call syntax and end token are found by having the template write a call; a call's arguments are assumed to be JSON, or
one tag each. The forced tokens after a turn are what the template writes between that turn and the next; a result names
its call by the same id. On loading, a conversation of two calls is proved: each step exactly extends the previous one,
as the template itself writes it. A template that fails is refused with the reason. If it passes only without a system
message, that text is put before the question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from appliance.rendering.chat import SPELLED, without_marks
from appliance.rendering.guarded import GuardedTokenizer, guard, unguarded
from appliance.rendering.jinja import ChatTemplate
from appliance.rendering.markers import TextMessage
from appliance.rendering.renderer import (
    PYTHON,
    SAY_IT,
    TOOLS,
    ChatMessage,
    Ids,
    Malformed,
    OwnTurn,
    RenderingError,
    ToolRequest,
)
from appliance.rendering.tools import arguments_of, declared, map_texts, read_call
from curriculum.contract.environment import ToolSchema

NAME_IT = 'write {"format": "told"} into rendering.json in its folder, or use a model trained to call tools'
_NONCE = "nonce7f20d4"
_ASKED = {"role": "user", "content": "1 + 1?"}
_BRIEF = {"role": "system", "content": "Be short."}
_ID = "call00001"
"""Call id for templates that require one: nine letters, as in Mistral's."""
_SECOND_ID = "call00002"
_IDS = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Accepted ids from the model's own calls."""


@dataclass(frozen=True)
class CallSyntax:
    """Syntax of tool calls in a chat template: JSON between two texts."""

    begin: str
    """Text before the JSON, stripped; empty if a call is only JSON."""
    end: str
    arguments: str
    """Key of the arguments beside `name`; empty if the JSON is the arguments, with the name in `begin`."""

    def named(self, text: str) -> str:
        """Returns the id of the tool call in a turn's text, or the default id."""
        try:
            value, _ = json.JSONDecoder().raw_decode(text.partition(self.begin)[2].lstrip() if self.begin else text)
        except (ValueError, RecursionError):
            return _ID
        name = value.get("id") if isinstance(value, dict) else None
        return name if isinstance(name, str) and _IDS.fullmatch(name) else _ID

    def read(self, text: str, tools: Sequence[ToolSchema]) -> ToolRequest | Malformed | None:
        """Parses the tool call in a turn's text; None without a call."""
        start = text.find(self.begin) if self.begin else 0
        body = text[start + len(self.begin) :].lstrip()
        if start < 0 or (not self.begin and not body.startswith("{")):
            return None
        try:
            value, length = json.JSONDecoder().raw_decode(body)
        except (ValueError, RecursionError):
            return Malformed(text, "the call is not JSON") if self.begin else None
        if not self.begin and not (isinstance(value, dict) and value.keys() >= {"name", self.arguments}):
            return None
        if self.begin and self.begin in body[length:]:
            return Malformed(text, "one call at a time")
        if body[length:].strip() != self.end:
            return Malformed(text, "the call does not end as the model's format ends it")
        if not self.arguments:
            return read_call("python", value, text, tools)
        if not isinstance(value, dict):
            return Malformed(text, "the call is no table")
        return read_call(value.get("name"), value.get(self.arguments), text, tools)


_PARAMETER = re.compile(r"\s*<parameter=([^<>\n]{1,64})>\n?(.*?)\n?</parameter>", re.DOTALL)
_FUNCTION = re.compile(r"\s*<function=([^<>\n]{1,64})>")


@dataclass(frozen=True)
class TaggedSyntax:
    """Syntax of tool calls in a chat template: `<function=NAME>` with a tag for each argument, as Qwen3-Coder has it.
    Arguments that the tool does not declare as texts are JSON."""

    begin: str
    """Text before the function's tag, stripped."""
    end: str
    arguments: str = "parameter"

    def named(self, text: str) -> str:
        """Returns the default id: these calls have none."""
        return _ID

    def read(self, text: str, tools: Sequence[ToolSchema]) -> ToolRequest | Malformed | None:
        """Parses the tool call in a turn's text; None without a call."""
        start = text.find(self.begin)
        if start < 0:
            return None
        called = _FUNCTION.match(text, start + len(self.begin))
        if called is None:
            return Malformed(text, "the call names no function")
        tool = next((one for one in tools or TOOLS if one.name == called[1]), None)
        declared_as = tool.parameters.get("properties", {}) if tool is not None else {}
        arguments: dict[str, Any] = {}
        at = called.end()
        while (given := _PARAMETER.match(text, at)) is not None:
            if given[1] in arguments:
                return Malformed(text, "the call gives an argument twice")
            arguments[given[1]] = given[2]
            schema = declared_as.get(given[1])
            if isinstance(schema, Mapping) and "string" not in schema.get("type", "string"):
                with suppress(ValueError, RecursionError):
                    arguments[given[1]] = json.loads(given[2])
            at = given.end()
        if "".join(text[at:].split()) != "</function>" + "".join(self.end.split()):
            return Malformed(text, "the call does not end as the model's format ends it")
        return read_call(called[1], arguments, text, tools)


class TemplateRenderer:
    """Renderer that writes conversations with a model's chat template; see `Renderer`."""

    chat = True

    def __init__(self, tokenizer: GuardedTokenizer, template: ChatTemplate, found: str = "named") -> None:
        """Creates the renderer of a chat template, and tests it. Raises RenderingError for a template that cannot write
        conversations token-exactly."""
        self.name = f"its own chat template ({found})"
        self._tokenizer = tokenizer
        self._template = template
        end = self._end_mark()
        self.stop: int = tokenizer.convert_tokens_to_ids(end)
        self._end = end
        self.other_stops: Ids = tuple(one for one in tokenizer.ends if one != self.stop)
        self._why_no_tools = ""
        try:
            self._syntax: CallSyntax | TaggedSyntax | None = self._call_syntax()
        except RenderingError as error:
            self._syntax, self._why_no_tools = None, str(error)
        self._prove([_ASKED])
        self.briefs = self._is_proved([_BRIEF, _ASKED])
        """False if the template drops or refuses a system text, which is then put before the question."""
        self._prove_guard()

        if not self.briefs:
            self.name = f"{self.name[:-1]}; a system text goes before the question)"

    @property
    def source(self) -> str:
        """Jinja source of the chat template that is used with tools."""
        return self._template.source

    @property
    def calls_tools(self) -> bool:
        """True if the chat template declares tools and writes parseable calls."""
        return self._syntax is not None

    def refuses(self, tools: Sequence[ToolSchema]) -> str:
        if tools and self._syntax is None:
            return f"its chat template cannot call tools: {self._why_no_tools}"
        others = [tool.name for tool in tools if tool.name != PYTHON.name]
        if others and self._syntax is not None and not self._syntax.arguments:
            return f"its chat template writes calls of {', '.join(others)} in an unsupported form"
        return ""

    def prompt(self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = TOOLS) -> Ids:
        if not messages or messages[-1].role not in ("user", "tool"):
            raise RenderingError("a conversation for the model must end with a user or tool message")
        self._require_tools(tools)
        rows: list[dict[str, Any]] = []
        name, tool = _ID, PYTHON.name
        for message in messages if self.briefs else _unbriefed(messages):
            if isinstance(message, OwnTurn):
                name, tool = self._called_by(message.ids, message.before, tools)
            rows.append(self._message(message, tools, name, tool))
        return self._ids(rows, tools, open_turn=True)

    def question(self, text: str) -> Ids:
        return self._ids([{"role": "user", "content": guard(text)}], (), open_turn=True)

    def follow(
        self, before: Ids, turn: Ids, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = TOOLS
    ) -> Ids | None:
        name, tool = self._called_by(turn, before, tools)
        new = [self._message(one, tools, name, tool) for one in messages]
        asks = any(one.role != "tool" for one in messages)
        calls = not asks or isinstance(self.read(turn, before, tools), ToolRequest)
        own = _called({"code": _NONCE}, name, tool=tool) if self._syntax is not None and calls else _said(_NONCE)
        whole = self._template.render([_ASKED, own, *new], declared(tools), open_turn=True)
        if asks:  # a template then drops earlier thoughts, and may drop the mark that opens a turn's
            opened = self._template.render([_ASKED], declared(tools), open_turn=True)
            if "</think>" in self._tokenizer.decode((*before, *turn)) or not whole.startswith(opened):
                return None
        behind = whole.partition(_NONCE)[2].partition(self._end)[2]
        return tuple(self._tokenizer.encode(behind, behind=True))

    def call(self, code: str) -> Ids:
        return self.request(ToolRequest(code))

    def request(self, request: ToolRequest, tools: Sequence[ToolSchema] = TOOLS) -> Ids:
        self._require_tools(tools)
        return self._turn(_called(map_texts(arguments_of(request), guard), tool=request.tool), tools)

    def answer(self, text: str) -> Ids:
        return self._turn({"role": "assistant", "content": guard(text)}, ())

    def plain(self, text: str) -> Ids:
        return tuple(self._tokenizer.plain(text))

    def text(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(ids)

    def read(self, turn: Ids, before: Ids = (), tools: Sequence[ToolSchema] = TOOLS) -> ToolRequest | Malformed | str:
        text = self._behind_thoughts(turn, before)
        asked = self._syntax.read(text, tools) if self._syntax is not None else None
        return without_marks(self._tokenizer, turn, text) if asked is None else asked

    def _behind_thoughts(self, turn: Ids, before: Ids) -> str:
        """Returns the text of a model's turn after its thoughts; empty if they do not end. A call may spell thought
        tags: for thoughts opened before it the first end counts, otherwise none after the call's beginning."""
        said = self._tokenizer.decode(turn[:-1])
        begin = self._syntax.begin if self._syntax is not None else ""
        head, call, rest = said.partition(begin) if begin else ("", "", said)
        if not begin and not said.lstrip().startswith("{"):
            head, rest = said, ""
        if "<think>" in head or self._tokenizer.decode(before[-8:]).rstrip().endswith("<think>"):
            return said.partition("</think>")[2]
        return head.rpartition("</think>")[2] + call + rest

    def _require_tools(self, tools: Sequence[ToolSchema]) -> None:
        if why := self.refuses(tools):
            raise RenderingError(why, hint=NAME_IT)

    def _called_by(self, turn: Ids, before: Ids, tools: Sequence[ToolSchema]) -> tuple[str, str]:
        """Returns the id and the tool of the call in a turn, as its result must name them."""
        asked = self.read(turn, before, tools)
        tool = asked.tool if isinstance(asked, ToolRequest) else PYTHON.name
        if self._syntax is None or not isinstance(asked, ToolRequest):
            return _ID, tool
        name = self._syntax.named(self._behind_thoughts(turn, before))
        if name != _ID:
            try:
                self._template.render([_ASKED, _called({}, name), _result("", name)], declared(tools), open_turn=True)
            except RenderingError:  # the template rejects the id that the model wrote
                return _ID, tool
        return name, tool

    def _message(self, message: ChatMessage, tools: Sequence[ToolSchema], name: str, tool: str) -> dict[str, Any]:
        """Converts a message to the chat template's form; `name` and `tool` are those of the last call."""
        if isinstance(message, OwnTurn):
            asked = self.read(message.ids, message.before, tools)
            if isinstance(asked, ToolRequest):
                return _called(map_texts(arguments_of(asked), guard), name, tool=asked.tool)
            text = asked if isinstance(asked, str) else without_marks(self._tokenizer, message.ids, asked.code)
            return {"role": "assistant", "content": guard(text)}
        if message.role == "tool":
            return _result(guard(message.text), name, tool=tool)
        if message.role not in ("system", "user", "assistant"):
            raise RenderingError(f"a message with role {message.role!r} cannot be written")
        return {"role": message.role, "content": guard(message.text)}

    def _ids(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[ToolSchema], *, open_turn: bool) -> Ids:
        return tuple(self._tokenizer.encode(self._template.render(messages, declared(tools), open_turn=open_turn)))

    def _own(self, message: Mapping[str, Any], tools: Sequence[ToolSchema]) -> str:
        """Renders a model turn with the chat template; returns its text after the start of the turn."""
        asked = self._template.render([_ASKED], declared(tools), open_turn=True)
        whole = self._template.render([_ASKED, message], declared(tools), open_turn=False)
        if not whole.startswith(asked):
            raise RenderingError("its chat template writes a turn differently from its own prompt", hint=SAY_IT)
        return whole[len(asked) :]

    def _turn(self, message: Mapping[str, Any], tools: Sequence[ToolSchema]) -> Ids:
        ids = self._tokenizer.encode(self._own(message, tools), behind=True)
        if self.stop not in ids:
            raise RenderingError("its chat template ends long and short turns differently", hint=SAY_IT)
        return tuple(ids[: ids.index(self.stop) + 1])

    def _end_mark(self) -> str:
        """Returns the mark that ends a turn: what the template writes after an answer."""
        behind = self._own({"role": "assistant", "content": _NONCE}, ()).partition(_NONCE)[2]
        marks = [text for text in self._tokenizer.marks.values() if behind.lstrip().startswith(text)]
        if not marks:
            raise RenderingError(
                "its chat template ends a model turn without a special token, so its end cannot be detected",
                hint=SAY_IT,
            )
        return max(marks, key=len)

    def _call_syntax(self) -> CallSyntax | TaggedSyntax:
        asked = [self._template.render([_ASKED], declared(tools), open_turn=True) for tools in (TOOLS, ())]
        if asked[0] == asked[1]:
            raise RenderingError("it declares no tools to the model")
        body = self._own(_called({"code": _NONCE}), TOOLS).partition(self._end)[0]
        for at in (at for at, letter in enumerate(body) if letter == "{"):
            try:
                value, stop = json.JSONDecoder().raw_decode(body, at)
            except ValueError:
                continue
            arguments = {"code": _NONCE}
            for key in ("arguments", "parameters") if isinstance(value, dict) else ():
                if value.get("name") == "python" and value.get(key) in (arguments, json.dumps(arguments)):
                    return CallSyntax(body[:at].strip(), body[stop:].strip(), key)
            if value == arguments and "python" in body[:at]:
                return CallSyntax(body[:at].strip(), body[stop:].strip(), "")
        begin, function, rest = body.partition("<function=python>")
        tagged, _, end = rest.partition("</function>")
        if function and begin.strip() and tagged.split() == ["<parameter=code>", _NONCE, "</parameter>"]:
            return TaggedSyntax(begin.strip(), end.strip())
        raise RenderingError("it writes calls in an unsupported form: their arguments are not JSON")

    def _prove_guard(self) -> None:
        """Raises RenderingError if the chat template does not write outside text unchanged, which would also lose its
        guard."""
        spelled = "\n".join(self._tokenizer.marks.values())[:SPELLED] + "\nx"
        tools = TOOLS if self._syntax is not None else ()
        counts = []
        for text in ("x", spelled):
            said = [guard(f"{place} {text}") for place in range(4)]
            asked = [{"role": "system", "content": said[0]}] if self.briefs else []
            asked.append({"role": "user", "content": said[1]})
            called = [_called({"code": said[2]}), _result(said[3])] if tools else []
            written = self._template.render([*asked, *called], declared(tools), open_turn=True)
            if any(one["content"] not in written for one in asked):
                raise RenderingError("its chat template changes outside text", hint=SAY_IT)
            counts.append(self._tokenizer.count_marks((*self._tokenizer.encode(written), *self.answer(text))))
        if counts[0] != counts[1]:
            raise RenderingError("with its chat template outside text could become a special token", hint=SAY_IT)

    def _is_proved(self, asked: list[dict[str, Any]]) -> bool:
        try:
            self._prove(asked)
        except RenderingError:
            return False
        return True

    def _prove(self, asked: list[dict[str, Any]]) -> None:
        """Raises RenderingError unless the chat template writes a conversation of two calls equally in steps and as a
        whole."""
        tools = TOOLS if self._syntax is not None else ()
        ids = self._ids(asked, tools, open_turn=True)
        for code, name in (("1 + 1", _ID), ("2 + 2", _SECOND_ID)) if tools else ():
            message = _called({"code": code}, name)
            turn = self._turn(message, tools)
            if self.read(turn, ids) != ToolRequest(code):
                raise RenderingError("a call written by its chat template cannot be parsed", hint=SAY_IT)
            asked = [*asked, message, _result("2", name)]
            ids += turn + (self.follow(ids, turn, (TextMessage("2", "tool"),), tools) or ())
            if ids != self._ids(asked, tools, open_turn=True):
                raise RenderingError(
                    "its chat template rewrites earlier turns when a result is added, so training would not use the "
                    "sampled tokens",
                    hint=SAY_IT,
                )
        turn = self.answer("4")
        if unguarded(str(self.read(turn, ids))).strip() != "4":
            raise RenderingError("an answer written by its chat template cannot be parsed", hint=SAY_IT)


def _unbriefed(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Returns the conversation with a leading system text moved into the user's question."""
    brief, *others = messages
    if isinstance(brief, OwnTurn) or brief.role != "system":
        return list(messages)
    first = others[0] if others else None
    if isinstance(first, TextMessage) and first.role == "user":
        return [TextMessage(f"{brief.text}\n\n{first.text}"), *others[1:]]
    return [TextMessage(brief.text), *others]


def _said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _called(arguments: Mapping[str, Any], name: str = _ID, *, tool: str = PYTHON.name) -> dict[str, Any]:
    function = {"name": tool, "arguments": arguments}
    return {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "id": name, "function": function}]}


def _result(text: str, name: str = _ID, *, tool: str = PYTHON.name) -> dict[str, Any]:
    return {"role": "tool", "content": text, "name": tool, "tool_call_id": name}
