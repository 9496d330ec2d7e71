"""Renders conversations with a model's own chat template, and parses calls in its syntax.

Call syntax and end token are found by having the template write a call; a call's arguments are assumed to be JSON, or
one tag each. The forced tokens after a turn are what the template writes between that turn and the next; a result names
its call by the same id. On loading, a conversation of two calls is proved: each step exactly extends the previous one,
as the template itself writes it. A template that fails is refused with the reason. If it passes only without a system
message, that text is put before the question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from appliance.rendering.call_syntax import CallSyntax, TaggedSyntax, split_calls
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
    TurnParts,
    single_part,
)
from appliance.rendering.tools import arguments_of, declared, map_texts
from curriculum.contract.environment import ToolSchema

NAME_IT = 'write {"format": "told"} into rendering.json in its folder, or use a model trained to call tools'
_NONCE = "nonce7f20d4"
_ASKED = {"role": "user", "content": "1 + 1?"}
_BRIEF = {"role": "system", "content": "Be short."}
_ID = "call00001"
"""Call id for templates that require one: nine letters, as in Mistral's."""
_SECOND_ID = "call00002"
_CALLED = (_ID, PYTHON.name)
"""Id and tool of a result without a call."""


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
        self._prove_several()

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
        rows = self._messages(messages if self.briefs else _unbriefed(messages), tools, [_CALLED])
        return self._ids(rows, tools, open_turn=True)

    def question(self, text: str) -> Ids:
        return self._ids([{"role": "user", "content": guard(text)}], (), open_turn=True)

    def follow(
        self, before: Ids, turn: Ids, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = TOOLS
    ) -> Ids | None:
        called = self._called_by(turn, before, tools, _results(messages))
        new = self._messages(messages, tools, called)
        asks = any(one.role != "tool" for one in messages)
        calls = not asks or len(called) > 1 or isinstance(self.read(turn, before, tools), ToolRequest)
        nonce = _nonce_for(tools, messages)
        own = _said(nonce)
        if self._syntax is not None and calls:
            own = _calling([*(({"code": ""}, *one) for one in called[:-1]), ({"code": nonce}, *called[-1])])
        whole = self._template.render([_ASKED, own, *new], declared(tools), open_turn=True)
        if asks:  # a template then drops earlier thoughts, and may drop the mark that opens a turn's
            opened = self._template.render([_ASKED], declared(tools), open_turn=True)
            if "</think>" in self._tokenizer.decode((*before, *turn)) or not whole.startswith(opened):
                return None
        behind = whole.partition(nonce)[2].partition(self._end)[2]
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

    def parts(self, turn: Ids, before: Ids = (), tools: Sequence[ToolSchema] = TOOLS) -> TurnParts:
        return self._parts(turn, before, tools)[0]

    def _parts(self, turn: Ids, before: Ids, tools: Sequence[ToolSchema]) -> tuple[TurnParts, list[str]]:
        """Returns the parts of a turn, and the ids that the model gave to the calls."""
        text = self._behind_thoughts(turn, before)
        thoughts = self._tokenizer.decode(turn[:-1]).removesuffix(text)
        thoughts = without_marks(self._tokenizer, turn, thoughts).strip()
        thoughts = thoughts.removeprefix("<think>").removesuffix("</think>").strip()
        if self._syntax is not None:
            beside, split = split_calls(self._syntax, text)
            found = [self._syntax.read(one, tools) for one in split]
            calls = tuple(one for one in found if isinstance(one, ToolRequest))
            if calls and len(calls) == len(found):
                said = without_marks(self._tokenizer, turn, beside).strip()
                return TurnParts(said, calls, thoughts, text.strip()), [self._syntax.named(one) for one in split]
        return single_part(self.read(turn, before, tools), thoughts, text.strip()), []

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

    def _called_by(self, turn: Ids, before: Ids, tools: Sequence[ToolSchema], results: int) -> list[tuple[str, str]]:
        """Returns the id and the tool of each call in a turn, as its results must name them. Several calls count only
        if each has its result: the one result of a turn with more says that it is malformed."""
        found, ids = self._parts(turn, before, tools)
        if not found.calls or len(found.calls) not in (1, results):
            return [_CALLED]
        usual = [f"call{place:05}" for place in range(1, len(ids) + 1)]
        names = [name or other for name, other in zip(ids, usual, strict=True)]
        names = names if len(set(names)) == len(names) else usual
        called = [(name, one.tool) for name, one in zip(names, found.calls, strict=True)]
        if names != usual:
            asked = [_ASKED, _calling([({}, *one) for one in called]), *(_result("", *one) for one in called)]
            try:
                self._template.render(asked, declared(tools), open_turn=True)
            except RenderingError:  # the template rejects an id that the model wrote
                return [(name, one.tool) for name, one in zip(usual, found.calls, strict=True)]
        return called

    def _messages(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema], called: Sequence[tuple[str, str]]
    ) -> list[dict[str, Any]]:
        """Converts messages to the chat template's form; `called` are id and tool of the calls before them, which
        results answer in order."""
        rows: list[dict[str, Any]] = []
        result = 0
        for place, message in enumerate(messages):
            if isinstance(message, OwnTurn):
                result, results = 0, _results(messages[place + 1 :])
                called = self._called_by(message.ids, message.before, tools, results)
                rows.append(self._own_message(message, tools, called))
            elif message.role == "tool":
                rows.append(_result(guard(message.text), *called[min(result, len(called) - 1)]))
                result += 1
            elif message.role in ("system", "user", "assistant"):
                rows.append({"role": message.role, "content": guard(message.text)})
            else:
                raise RenderingError(f"a message with role {message.role!r} cannot be written")
        return rows

    def _own_message(
        self, turn: OwnTurn, tools: Sequence[ToolSchema], called: Sequence[tuple[str, str]]
    ) -> dict[str, Any]:
        found = self.parts(turn.ids, turn.before, tools)
        if found.calls and len(found.calls) == len(called):
            calls = zip(found.calls, called, strict=True)
            return _calling([(map_texts(arguments_of(one), guard), *name) for one, name in calls], guard(found.text))
        asked = self.read(turn.ids, turn.before, tools)
        text = asked if isinstance(asked, str) else without_marks(self._tokenizer, turn.ids, asked.code)
        return _said(guard(text))

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

    def _prove_several(self) -> None:
        """Finds the text between two calls of one turn; a turn has one call if the template cannot write two, and then
        their results, token-exactly."""
        if (single := self._syntax) is None:
            return
        own = _calling([({"code": "1 + 1"}, *_CALLED), ({"code": "2 + 2"}, _SECOND_ID, PYTHON.name)], "I look.")
        results = (TextMessage("2", "tool"), TextMessage("4", "tool"))
        try:
            body = self._own(own, TOOLS)
            end = single.end_of(body, body.find(single.opens, body.find(single.begin) + len(single.begin)))
            between, apart = body[end : body.find(single.opens, end)].strip(), f"{single.end}\n{single.begin}"
            is_apart = "".join(between.split()) == "".join(apart.split())  # models may add spaces there
            self._syntax = replace(single, between=apart if is_apart else between)
            ids, turn = self._ids([_ASKED], TOOLS, open_turn=True), self._turn(own, TOOLS)
            whole = self._ids([_ASKED, own, _result("2"), _result("4", _SECOND_ID)], TOOLS, open_turn=True)
            is_read = self.parts(turn, ids).calls == (ToolRequest("1 + 1"), ToolRequest("2 + 2"))
            if is_read and ids + turn + (self.follow(ids, turn, results) or ()) == whole:
                return
        except RenderingError:
            pass
        self._syntax = single

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


def _nonce_for(tools: Sequence[ToolSchema], messages: Sequence[ChatMessage]) -> str:
    """Returns a word that none of these texts has, as it is made of their digest."""
    said = json.dumps([declared(tools), [one.text for one in messages]])
    return f"nonce{hashlib.sha256(said.encode()).hexdigest()[:16]}"


def _said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _called(arguments: Mapping[str, Any], name: str = _ID, *, tool: str = PYTHON.name) -> dict[str, Any]:
    return _calling([(arguments, name, tool)])


def _calling(calls: Sequence[tuple[Mapping[str, Any], str, str]], text: str = "") -> dict[str, Any]:
    """Returns a turn with calls, each with its arguments, id and tool."""
    made = [
        {"type": "function", "id": name, "function": {"name": tool, "arguments": arguments}}
        for arguments, name, tool in calls
    ]
    return {"role": "assistant", "content": text, "tool_calls": made}


def _results(messages: Sequence[ChatMessage]) -> int:
    """Returns how many messages at the beginning are results."""
    return sum(1 for _ in takewhile(lambda one: one.role == "tool", messages))


def _result(text: str, name: str = _ID, tool: str = PYTHON.name) -> dict[str, Any]:
    return {"role": "tool", "content": text, "name": tool, "tool_call_id": name}
