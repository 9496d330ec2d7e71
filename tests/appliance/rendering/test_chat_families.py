"""Every family of chat models: what is written is read again, conversations only grow, and no text has power."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache

import pytest
from chat_models import MARKS, files_of, qwen3_template, tokenizer_of
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS
from tables import table

from appliance.rendering import chat
from appliance.rendering.chat import FAMILIES, HARMONY, ChatRenderer
from appliance.rendering.formats import FAMILY_NAMES, load_renderer
from appliance.rendering.guarded import GuardedTokenizer, guard
from appliance.rendering.markers import TextMessage
from appliance.rendering.renderer import TOOLS, Malformed, OwnTurn, RenderingError, ToolRequest
from appliance.rendering.tools import mark_in
from curriculum.contract.environment import ToolSchema

CODE = 'import math\nprint(math.gcd(12, 18), "<|x|>", {"a": 1})'
ASKED = (TextMessage("Be short.", "system"), TextMessage("gcd of 12 and 18?"))


@cache
def made(family: str) -> tuple[GuardedTokenizer, ChatRenderer]:
    renderer = load_renderer(files_of(family))
    assert isinstance(renderer, ChatRenderer)
    return GuardedTokenizer(files_of(family)), renderer


@pytest.fixture(params=MARKS)
def family(request: pytest.FixtureRequest) -> str:
    return request.param


def test_the_families_are_those_of_the_table_and_each_is_tried_here_but_the_one_that_knows_its_vocabulary() -> None:
    assert set(FAMILY_NAMES) == FAMILIES.keys() == {*MARKS, HARMONY}
    with pytest.raises(RenderingError, match=r"cannot be used: .* hash mismatch"):
        ChatRenderer(made("qwen3")[0], HARMONY, {})


@pytest.mark.parametrize("named", ["{{ messages }}", "<|turn>model\\n<|channel>thought\\n<channel|>"])
def test_gemma_4_begins_a_turn_as_the_model_s_own_template_does(named: str) -> None:
    renderer = load_renderer({**files_of("gemma4"), "chat_template.jinja": named.encode()})
    begins = "<|turn>model\n<|channel>thought\n<channel|>" if "thought" in named else "<|turn>model\n"
    assert renderer.text(renderer.question("1 + 1?")).endswith(begins)


def test_c13_a_call_and_an_answer_are_read_back_and_the_conversation_only_grows(family: str) -> None:
    _, renderer = made(family)
    ids = renderer.prompt(ASKED)
    said: list[object] = list(ASKED)
    for code in (CODE, "print(2)"):
        call = renderer.call(code)
        assert call[-1] in (renderer.stop, *renderer.other_stops)
        assert renderer.read(call, ids) == ToolRequest(code)
        forced = renderer.follow(ids, call, (TextMessage("6\n7", "tool"),))
        assert forced, "the result is written behind the turn, of which no token is changed"
        said += [OwnTurn(call, ids), TextMessage("6\n7", "tool")]
        ids += call + forced
    answer = renderer.answer("so \\boxed{6}")
    assert str(renderer.read(answer, ids)).strip() == "so \\boxed{6}"
    anew = renderer.prompt(said)  # type: ignore[arg-type]
    assert renderer.text(anew).count("print(2)") == renderer.text(ids).count("print(2)")


def test_text_and_several_calls_are_read_together_and_each_call_gets_its_result(family: str) -> None:
    _, renderer = made(family)
    calls = [
        {
            "type": "function",
            "id": f"functions.python:{place}",
            "function": {"name": "python", "arguments": {"code": one}},
        }
        for place, one in enumerate((CODE, "print(2)"))
    ]
    before = renderer.prompt(ASKED)
    results = (TextMessage("<6>", "tool"), TextMessage("<7>", "tool"))
    if family == "llama-3":  # its format has one call a turn
        assert not renderer._several
        return
    turn = renderer._turn({"content": "I look.", "tool_calls": calls}, TOOLS)
    parts = renderer.parts(turn, before)
    assert parts.calls == (ToolRequest(CODE), ToolRequest("print(2)"))
    assert parts.text == ("" if family == "gemma4" else "I look.")
    assert renderer.read(turn, before) == Malformed(renderer.text(turn), "one call at a time")
    assert renderer.parts(renderer.call(CODE), before).calls == (ToolRequest(CODE),)
    forced = renderer.follow(before, turn, results)
    anew = renderer.text(renderer.prompt((*ASKED, OwnTurn(turn, before), *results)))
    for text in ([renderer.text(forced)] if forced else []) + [anew]:
        assert 0 < text.index("<6>") < text.index("<7>")
        if family.startswith("kimi"):
            assert "functions.python:0\n<6>" in text
            assert "functions.python:1\n<7>" in text
    assert (forced is None) == (family == "deepseek-v4"), "the library begins a new sample there"
    wrong = renderer._turn({"content": "I look.", "tool_calls": [calls[0], renamed_call("other")]}, TOOLS)
    assert renderer.parts(wrong, before).calls == ()
    assert "other" in renderer.parts(wrong, before).text


def renamed_call(name: str) -> dict[str, object]:
    return {"type": "function", "id": f"functions.{name}:1", "function": {"name": name, "arguments": {"code": "1"}}}


def test_tools_are_told_to_the_model_and_a_task_without_tools_tells_of_none(family: str) -> None:
    _, renderer = made(family)
    assert "Runs Python code" in renderer.text(renderer.prompt(ASKED))
    assert "python" not in renderer.text(renderer.prompt(ASKED, tools=()))


marks = st.sampled_from(sorted({mark for all_of in MARKS.values() for mark in all_of}))
halves = st.builds(lambda mark, at: mark[: at % len(mark)], marks, st.integers(0, 30))
hostile = st.lists(st.one_of(st.text(max_size=8), marks, halves, st.just("\n")), max_size=8).map("".join)


@settings(max_examples=FROM_STRANGERS)
@given(family=st.sampled_from(sorted(MARKS)), question=hostile, shown=hostile, code=hostile)
def test_c13_no_text_from_outside_becomes_a_mark(family: str, question: str, shown: str, code: str) -> None:
    tokenizer, renderer = made(family)
    asked, plain = (TextMessage(question or "x"),), (TextMessage("x"),)
    ids, benign = renderer.prompt(asked), renderer.prompt(plain)
    assert tokenizer.count_marks(ids) == tokenizer.count_marks(benign)
    call = renderer.call("x")
    forced, quiet = (
        renderer.follow(benign, call, (TextMessage(shown, "tool"),)),
        renderer.follow(benign, call, (TextMessage("x", "tool"),)),
    )
    assert forced is not None
    assert quiet is not None
    assert tokenizer.count_marks(forced) == tokenizer.count_marks(quiet)
    assert tokenizer.count_marks(renderer.plain(shown)) == 0
    assert renderer.text(renderer.plain(shown)) == shown
    written = renderer.call(f"x{code}")
    assert tokenizer.count_marks(written) == tokenizer.count_marks(call)
    anew = [renderer.prompt([*plain, OwnTurn(turn, benign), TextMessage("x", "tool")]) for turn in (written, call)]
    assert tokenizer.count_marks(anew[0]) == tokenizer.count_marks(anew[1])


def test_a_text_that_spells_thoughts_is_not_taken_apart(family: str) -> None:
    tokenizer, renderer = made(family)
    others = "".join(mark for mark in tokenizer.marks.values() if "think" not in mark)
    before = renderer.question("1 + 1?")
    for text in (f"<think>{others}</think>b", f"a</think>{others}", f"a<think>b{others}</think>c</think>{others}"):
        turns = [renderer.answer(one) for one in (text, "x")]
        assert tokenizer.count_marks(turns[0]) == tokenizer.count_marks(turns[1])
        assert renderer.text(turns[0]).count(text) == 1
        followed = [[TextMessage("x"), OwnTurn(turn, before), TextMessage("x", "tool")] for turn in turns]
        assert tokenizer.count_marks(renderer.prompt(followed[0])) == tokenizer.count_marks(
            renderer.prompt(followed[1])
        )


@given(hostile)
def test_guarded_text_is_the_tokens_of_the_whole_where_it_spells_no_mark(text: str) -> None:
    tokenizer = made("qwen3")[0]
    if not any(mark in f"question: {text}\nanswer" for mark in MARKS["qwen3"]):
        whole = tokenizer.encode(f"<|im_start|>question: {text}\nanswer<|im_end|>")
        assert tokenizer.encode(f"<|im_start|>question: {guard(text)}\nanswer<|im_end|>") == whole


def test_guarded_text_behind_a_mark_is_not_written_as_the_first_words_of_all() -> None:
    """As in tokenizers that put a space before those alone."""
    described = json.loads(tokenizer_of("qwen3"))
    described["pre_tokenizer"] = {
        "type": "Metaspace",
        "replacement": "\u2581",
        "prepend_scheme": "first",
        "split": False,
    }
    described["model"] = {"type": "BPE", "vocab": {"\u2581": 0, "a": 1, "b": 2}, "merges": []}
    described["added_tokens"] = [dict(described["added_tokens"][0], id=3, content="[A]")]
    tokenizer = GuardedTokenizer({"tokenizer.json": json.dumps(described).encode()})
    for text in ("a[A]%s[A]b", "%s[A]%s", "[A]a%sb"):
        whole = tokenizer.encode(text.replace("%s", "ab"))
        assert tokenizer.encode(text.replace("%s", guard("ab"))) == whole
    assert tokenizer.encode("ab", behind=True) == [1, 2]


def test_text_that_spells_the_guard_itself_is_text() -> None:
    tokenizer = made("qwen3")[0]
    inner = guard("a<|im_end|>b")
    for text in (inner, inner[3:], inner + inner, inner.replace("open", "cut"), inner.replace("open", "behind")):
        assert tokenizer.decode(tokenizer.encode(f"<|im_start|>{guard(text)}")) == f"<|im_start|>{text}"
        assert tokenizer.count_marks(tokenizer.encode(f"<|im_start|>{guard(text)}")) == 1


QWEN_TURNS = {
    '<tool_call>\n{"name": "python", "arguments": {"code": "1"}}\n</tool_call>\n<tool_call>\n{"name": "python", '
    '"arguments": {"code": "2"}}\n</tool_call>': "one call at a time",
    '<tool_call>\n{"name": "shell", "arguments": {"code": "1"}}\n</tool_call>': "there is no tool 'shell'",
    '<tool_call>\n{"name": "python", "arguments": {"cmd": "1"}}\n</tool_call>': "one argument, `code`",
    '<tool_call>\n{"name": "python", "arguments": {"code": 1}}\n</tool_call>': "one argument, `code`",
    '<tool_call>\n{"name": "python", "arguments": {"code": "  "}}\n</tool_call>': "empty call",
    '<tool_call>\n{"name": "python", "argum': "does not end",
    "<tool_call>\nprint(1)\n</tool_call>": "not JSON",
    '<tool_call>\n{"arguments": {"code": "1"}}\n</tool_call>': "names no tool",
}


@table("turn", QWEN_TURNS)
def test_a_call_that_cannot_be_run_is_told_as_such(turn: str) -> None:
    tokenizer, renderer = made("qwen3")
    read = renderer.read((*tokenizer.encode(turn), renderer.stop), renderer.prompt(ASKED))
    assert isinstance(read, Malformed)
    assert QWEN_TURNS[turn] in read.reason


def test_thoughts_are_a_part_of_their_own() -> None:
    tokenizer, renderer = made("qwen3")
    for said, text in ((renderer.answer("six"), "six"), (renderer.call("1"), "")):
        turn = (*tokenizer.encode("<think>\nHow?\n</think>\n\n"), *said)
        parts = renderer.parts(turn, renderer.prompt(ASKED))
        assert (parts.thoughts, parts.text.strip()) == ("How?", text)


def test_thoughts_and_control_tokens_are_no_part_of_an_answer() -> None:
    tokenizer, renderer = made("qwen3")
    turn = tokenizer.encode("<think>\nis it \\boxed{1}?\n</think>\n\n<|im_start|>\\boxed{2}" + guard("<|im_start|>"))
    said = str(renderer.read((*turn, renderer.stop), renderer.prompt(ASKED)))
    assert said.strip() == "\\boxed{2}"
    spelled = tokenizer.plain("it ends with <|im_end|>")
    assert renderer.read((*spelled, renderer.stop), renderer.prompt(ASKED)) == "it ends with <|im_end|>"
    unended = tokenizer.encode("<think>\nis it \\boxed{1}?")
    assert "boxed" not in str(renderer.read((*unended, renderer.stop), renderer.prompt(ASKED)))


def test_whatever_a_model_samples_can_be_read_and_gone_on_from(family: str) -> None:
    tokenizer, renderer = made(family)
    before = renderer.prompt(ASKED)
    for mark in tokenizer.marks:
        turn = (mark, *tokenizer.plain("x"), mark, renderer.stop)
        read = renderer.read(turn, before)
        assert isinstance(read, str | Malformed | ToolRequest)
        forced = renderer.follow(before, turn, (TextMessage("error", "tool"),))
        assert forced is None or len(forced) > 0
        if forced is None:
            assert renderer.prompt((*ASKED, OwnTurn(turn, before), TextMessage("error", "tool")))


def test_a_family_is_found_only_where_it_writes_what_the_model_s_own_template_does() -> None:
    files = {"tokenizer.json": tokenizer_of("qwen3").encode(), "chat_template.jinja": qwen3_template().encode()}
    assert load_renderer(files).name == "qwen3 (found: identical to the model's chat template)"
    other = files["chat_template.jinja"].replace(
        b"<|im_start|>user\\n<tool_response>", b"<|im_start|>tool\\n<tool_response>"
    )
    assert load_renderer({**files, "chat_template.jinja": other}).name.startswith("its own chat template")


def test_a_format_in_which_text_would_become_a_special_token_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "guard", str)
    with pytest.raises(RenderingError, match="could become a special token"):
        load_renderer(files_of("qwen3"))


def test_a_format_that_does_not_fit_the_tokenizer_or_an_unknown_setting_is_refused() -> None:
    with pytest.raises(RenderingError, match="lacks tokens of the format 'llama-3'") as met:
        load_renderer({**files_of("qwen3"), "rendering.json": b'{"format": "llama-3"}'})
    assert met.value.hint
    with pytest.raises(RenderingError, match=r"cannot be used: .* temperature "):
        load_renderer(files_of("qwen3", temperature=2))
    thinks, does_not = (load_renderer(files_of("qwen3", enable_thinking=choice)) for choice in (True, False))
    assert does_not.text(does_not.question("1?")).endswith("</think>\n\n")
    assert "</think>" not in thinks.text(thinks.question("1?"))


SEARCH = ToolSchema(
    name="search",
    description="Finds messages.",
    parameters={
        "type": "object",
        "properties": {
            "keywords": {"type": "string"},
            "limit": {"type": "integer"},
            "senders": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["keywords"],
    },
)
BOTH = (*TOOLS, SEARCH)
SEARCHES = (
    {"keywords": "invoice of May"},
    {"keywords": "12", "limit": 3},
    {"keywords": 'a "b" <c>\n\\ü', "senders": ["x@y.example", "z"]},
)


def test_a_second_tool_is_told_called_and_answered_in_every_family(family: str) -> None:
    _, renderer = made(family)
    assert renderer.refuses(BOTH) == ""
    ids = renderer.prompt(ASKED, BOTH)
    assert "Finds messages." in renderer.text(ids)
    assert "Runs Python code" in renderer.text(ids)
    said: list[object] = list(ASKED)
    for request in (*(ToolRequest(tool="search", arguments=one) for one in SEARCHES), ToolRequest(CODE)):
        call = renderer.request(request, BOTH)
        assert renderer.read(call, ids, BOTH) == request
        assert renderer.read(call, ids, (SEARCH,)) == request or request.tool == "python"
        forced = renderer.follow(ids, call, (TextMessage("found 1", "tool"),), BOTH)
        assert forced, "the result is written behind the turn, of which no token is changed"
        said += [OwnTurn(call, ids), TextMessage("found 1", "tool")]
        ids += call + forced
    anew = renderer.prompt(said, BOTH)  # type: ignore[arg-type]
    assert renderer.text(anew) == renderer.text(ids), "a result that is written anew is of the call that it was of"


@settings(max_examples=FROM_STRANGERS)
@given(family=st.sampled_from(sorted(MARKS)), keywords=hostile, sender=hostile)
def test_no_argument_of_a_call_becomes_a_mark(family: str, keywords: str, sender: str) -> None:
    tokenizer, renderer = made(family)
    calls = [
        renderer.request(ToolRequest(tool="search", arguments={"keywords": f"x{one}", "senders": [f"x{two}"]}), BOTH)
        for one, two in ((keywords, sender), ("", ""))
    ]
    assert tokenizer.count_marks(calls[0]) == tokenizer.count_marks(calls[1])
    plain = (TextMessage("x"),)
    before = renderer.prompt(plain, BOTH)
    anew = [renderer.prompt([*plain, OwnTurn(turn, before), TextMessage("x", "tool")], BOTH) for turn in calls]
    assert tokenizer.count_marks(anew[0]) == tokenizer.count_marks(anew[1])


def test_every_mark_that_a_declaration_spells_is_found() -> None:
    for mark in ('<|"|>', "<|a\\b|>", *(mark for family in MARKS.values() for mark in family)):
        wide = "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in mark)
        for described in (mark, wide):
            tool = SEARCH.model_copy(update={"description": f"Finds {described}."})
            assert "spells" in mark_in((tool,), ("<|other|>", mark))
    assert mark_in((SEARCH,), ("<|other|>",)) == ""


def renamed(tokenizer: GuardedTokenizer, turn: Sequence[int], name: str) -> tuple[int, ...]:
    """A turn that calls `search`, as if the model had spelled another name."""
    ids: list[int] = []
    run: list[int] = []
    for token in turn:
        if token in tokenizer.marks:
            ids += [*tokenizer.plain(tokenizer.decode(run).replace("search", name)), token]
            run = []
        else:
            run.append(token)
    return (*ids, *run)


def test_no_name_of_a_call_becomes_a_mark(family: str) -> None:
    tokenizer, renderer = made(family)
    before = renderer.prompt(ASKED, BOTH)
    call = renderer.request(ToolRequest(tool="search", arguments={"keywords": "x"}), BOTH)
    counts = []
    for name in ("x" + "".join(tokenizer.marks.values()), "y", "\\ud800"):
        turn = renamed(tokenizer, call, name)
        assert isinstance(renderer.read(turn, before, BOTH), Malformed)
        forced = renderer.follow(before, turn, (TextMessage("no such tool", "tool"),), BOTH)
        anew = renderer.prompt([*ASKED, OwnTurn(turn, before), TextMessage("no such tool", "tool")], BOTH)
        counts.append((tokenizer.count_marks(forced or ()), tokenizer.count_marks(anew)))
    assert counts[0] == counts[1] == counts[2]


def test_arguments_that_do_not_fit_are_malformed_and_never_repaired() -> None:
    tokenizer, renderer = made("qwen3")
    for arguments, why in {
        '{"keywords": 1}': "keywords",
        '{"limit": 1}': "keywords",
        '{"keywords": "a", "limit": "1"}': "limit",
        '{"keywords": "a", "page": 1}': "no argument `page`",
        '{"keywords": "a", "limit": NaN}': "",
        '["a"]': "",
    }.items():
        turn = tokenizer.encode(f'<tool_call>\n{{"name": "search", "arguments": {arguments}}}\n</tool_call>')
        read = renderer.read((*turn, renderer.stop), renderer.prompt(ASKED, BOTH), BOTH)
        assert isinstance(read, Malformed), arguments
        assert why in read.reason, (arguments, read.reason)
