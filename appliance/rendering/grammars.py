"""Writes grammars for a model's turn: a call of one of these tools, or an answer in JSON. Pure.

A format's marks and words are those that its renderer writes around a call or an answer. The grammar is Lark text as
llguidance reads it. Thoughts stay free: they come before what is bound.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from appliance.rendering.renderer import PYTHON, Ids, Renderer, RenderingError, ToolRequest
from curriculum.contract.environment import ToolSchema

_WORD = "zqx7"
_OBJECT = re.compile(r"\{\s*" + f'"(?:{_WORD}|code)"' + r"\s*:\s*" + f'(?:7|"{_WORD}")' + r"\s*\}")
Frame = tuple[str, str, str, str | None]
"""Grammar before arguments, of the text behind them and of the rest, and the space behind a comma in their JSON; None
without JSON."""
_BLANK = "/[ \\n]{0,4}/"
_THOUGHTS = ("<think>", "</think>")


def turn_grammar(
    renderer: Renderer,
    marks: Mapping[int, str],
    before: Ids,
    tools: Sequence[ToolSchema] = (),
    schema: Mapping[str, Any] | None = None,
) -> str:
    """Returns the grammar of a turn that calls one of these tools, or answers with JSON of a schema. `marks` are the
    format's special tokens by id, `before` are the tokens before the turn. Empty if the format writes no arguments as
    JSON."""
    bound: list[tuple[Frame, Mapping[str, Any]]] = []
    for tool in tools:
        asked = ToolRequest(_WORD) if tool.name == PYTHON.name else ToolRequest(tool=tool.name, arguments={_WORD: 7})
        try:
            frame = _frame(renderer, marks, renderer.request(asked, (tool,)))
        except RenderingError:
            return ""
        if frame is None or (frame[3] is None and tool.name != PYTHON.name):
            return ""
        bound.append((frame, tool.parameters))
    if schema is not None:
        frame = _frame(renderer, marks, renderer.answer(f'{{"{_WORD}": 7}}'))
        if frame is None:
            return ""
        bound.append((frame, schema))
    return _grammar(bound, marks, before)


def _frame(renderer: Renderer, marks: Mapping[int, str], turn: Ids) -> Frame | None:
    """Returns the frame of a turn's arguments; None if they stand nowhere in one piece."""
    stops = {renderer.stop, *renderer.other_stops}
    pieces: list[tuple[int, Ids]] = [(0, ())]
    for token in turn[:-1] if turn[-1] in stops else turn:
        if token in marks:
            pieces += [(token, ()), (0, ())]
        else:
            pieces[-1] = (0, (*pieces[-1][1], token))
    said = [(mark, renderer.text(ids) if ids else "") for mark, ids in pieces]
    for at, (_, text) in enumerate(said):
        found = _OBJECT.search(text)
        start, end = found.span() if found else (text.find(_WORD), text.find(_WORD) + len(_WORD))
        if start >= 0:
            head = [*said[:at], (0, text[:start])]
            thoughts = [place for place, (mark, _) in enumerate(head) if marks.get(mark) == _THOUGHTS[1]]
            head = head[thoughts[-1] + 1 :] if thoughts else head
            head[0] = (head[0][0], head[0][1].lstrip())
            space = None if found is None else " " * (": " in found[0])
            return _written(head), _written([(0, text[end:])]), _written(said[at + 1 :]), space
    return None


def _written(pieces: Sequence[tuple[int, str]]) -> str:
    return " ".join(
        f"<[{mark}]>" if mark else json.dumps(text, ensure_ascii=False) for mark, text in pieces if mark or text
    )


def _grammar(bound: Sequence[tuple[Frame, Mapping[str, Any]]], marks: Mapping[int, str], before: Ids) -> str:
    """Returns the grammar of a turn in one of these frames, with arguments of its schema."""
    turns = " | ".join(f"turn{at}" for at in range(len(bound)))
    lines = [f"start: {_thoughts(marks, before)} ({turns})"]
    for at, ((head, behind, rest, space), schema) in enumerate(bound):
        if space is None:  # the text behind ends the arguments, which may be anything
            suffix = f"[suffix={behind}]" if behind else ""
            lines += [f"turn{at}: {head} value{at} {rest}", f"value{at}{suffix}: /(?s:.+)/"]
            continue
        # One way to write JSON, the format's own: otherwise a weak model may write spaces without end.
        spaces = {"whitespace_flexible": False, "item_separator": f",{space}", "key_separator": f":{space}"}
        told = json.dumps({**schema, "x-guidance": spaces})
        lines += [f"turn{at}: {head} value{at} {behind} {rest}", f"value{at}: %json {told}"]
    return "\n".join(lines)


def _thoughts(marks: Mapping[int, str], before: Ids) -> str:
    """Returns the grammar of thoughts before a turn's text: any, if the prompt or the turn opens them, and none if the
    prompt has closed them."""
    named = {text: token for token, text in marks.items()}
    first, last = (named.get(one) for one in _THOUGHTS)
    if first is None or last is None:
        return ""
    ahead, lately = f"/(?s:.*)/ <[{last}]> {_BLANK}", before[-8:]
    if last in lately:
        return _BLANK
    return ahead if first in lately else f"{_BLANK} (<[{first}]> {ahead})?"
