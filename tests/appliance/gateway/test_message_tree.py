"""Whatever a client makes of its history, a path is what the engine read and drew, and no path is another one's."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from chat_models import files_of, text_and_calls
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from appliance.gateway import message_tree
from appliance.gateway.chat_request import ChatRequest, SentMessage, answered_calls, message_digests
from appliance.gateway.conversation import ConversationError, append_turn, history_of, read_turn, write
from appliance.gateway.message_tree import MOST_LIVE, MessageTree, OpenSessions
from appliance.inference.engine import Turn
from appliance.records.rollouts import WeightSpan, path_to, paths
from appliance.rendering.formats import load_renderer
from appliance.rendering.markers import SEEDLING, MarkerRenderer
from appliance.rendering.renderer import Ids, Renderer, ToolRequest
from appliance.seedling.tokenizer import train_tokenizer

Sent = dict[str, Any]
PYTHON = {
    "type": "function",
    "function": {
        "name": "python",
        "parameters": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
    },
}


@cache
def markers() -> Renderer:
    tokenizer = train_tokenizer(["print(1+2) gcd of 12 and 18? \\boxed{6} NameError: name"] * 50)
    return MarkerRenderer(Tokenizer.from_str(tokenizer.to_str()), SEEDLING)


@cache
def qwen() -> Renderer:
    return load_renderer(files_of("qwen3"))


def user(text: str) -> Sent:
    return {"role": "user", "content": text}


def result(answer: Sent, text: str) -> Sent:
    return {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": text}


class Engine:
    """What a gateway does with a request, without HTTP; it logs what the engine read and drew."""

    def __init__(self, renderer: Renderer) -> None:
        self.renderer, self.sessions = renderer, OpenSessions()
        self.log: list[tuple[Ids, Ids]] = []
        self.trees: dict[str, MessageTree] = {}
        self.extended: list[bool] = []
        self.newest: MessageTree
        self.node = 0

    def ask(
        self,
        messages: Sequence[Sent],
        *,
        code: str | None = None,
        text: str = "",
        drawn: Ids = (),
        whole: bool = True,
        token: str = "t",
        version: str = "v",
        temperature: float | None = None,
    ) -> Sent:
        """Sends the messages, and returns the answer as the client has it: a call with `code`, `text`, or `drawn`."""
        request = ChatRequest.model_validate(
            {"model": "champion", "messages": list(messages), "tools": [PYTHON], "temperature": temperature}
        )
        history = history_of(token, request.messages)
        match = self.sessions.find(history, version, alone=False)
        prompt = write(request, history, match, self.renderer, 1.0)
        self.extended.append(match.turn is not None and prompt.forced.parent == match.turn.node)
        spoken = self.renderer.call(code) if code is not None else (*self.renderer.plain(text), self.renderer.stop)
        drawn = drawn or spoken
        span = WeightSpan(version=version, start=0, end=len(drawn))
        turn = Turn(0, drawn, (-0.5,) * len(drawn), "stop", (span,))
        self.log.append((prompt.ids, drawn))
        if self.renderer is markers():
            self._require_said(request.messages, prompt.ids)
        read = read_turn(turn, prompt, self.renderer, request)
        said = read.text if whole else read.text[: len(read.text) // 2]
        calls = list(read.calls) or None
        answer = SentMessage(role="assistant", content=None if calls and not said else said, tool_calls=calls)
        self.newest, added = append_turn(
            self.sessions, request, prompt, turn, answer, version=version, created="", whole=whole
        )
        self.node = added.node
        self.trees[self.newest.id] = self.newest
        return answer.model_dump(exclude_none=True)

    def _require_said(self, messages: Sequence[SentMessage], ids: Ids) -> None:
        """The prompt is the conversation that the client sent: all of it, in order, and nothing else."""
        text, at = self.renderer.text(ids), 0
        for one in messages:
            code = json.loads(one.tool_calls[0].function.arguments)["code"] if one.tool_calls else ""
            wanted = one.text.strip() or code
            at = text.index(wanted, at) + len(wanted)
        turns = sum(one.role == "assistant" for one in messages)
        given = len(messages) - turns - (messages[0].role == "system")
        assert text.count("<|user|>") + text.count("<|result|>") == given
        assert (text.count("<|assistant|>"), text.count("<|end|>")) == (turns + 1, turns + given)

    def require_exact(self) -> None:
        """Every sampled node of every session lies behind exactly what the engine read when it drew it."""
        seen = [
            (tree.context(node.parent), node.ids) for tree in self.trees.values() for node in tree.nodes if node.sampled
        ]
        assert sorted(seen) == sorted(self.log)
        for tree in self.trees.values():
            for path in paths(tree.nodes):
                assert path == path_to(tree.nodes, path[-1])
                assert tree.nodes[path[-1]].sampled


def why(engine: Engine) -> str:
    return engine.newest.nodes[engine.node].why


def samples(tree: MessageTree) -> int:
    return len(paths(tree.nodes))


def renamed(answer: Sent) -> Sent:
    return {**answer, "tool_calls": [{**one, "id": "x1"} for one in answer.get("tool_calls", ())]}


def without_ids(answer: Sent) -> Sent:
    calls = [{**one, "id": None, "index": 0} for one in answer.get("tool_calls", ())]
    return {**answer, "tool_calls": calls, "content": answer.get("content", "")}


def reserialised(answer: Sent) -> Sent:
    functions = [one["function"] for one in answer.get("tool_calls", ())]
    new = [{**one, "arguments": json.dumps(json.loads(one["arguments"]), indent=3)} for one in functions]
    calls = [{**one, "function": new[at]} for at, one in enumerate(answer.get("tool_calls", ()))]
    return {**answer, "tool_calls": calls, "reasoning_content": "thoughts"}


def spaced(answer: Sent) -> Sent:
    return {**answer, "content": f" {answer['content']}\n"} if "content" in answer else answer


REWORDED: list[Callable[[Sent], Sent]] = [dict, renamed, without_ids, reserialised, spaced]
"""What unchanged clients do to a turn before they send it back."""


def tidy(answer: Sent) -> Sent:
    return {name: one for name, one in answer.items() if one or name == "role" or name == "content"}


def sent_back(answer: Sent, how: int) -> Sent:
    return tidy(REWORDED[how % len(REWORDED)](answer))


@given(st.integers(0, 10**9), st.integers(1, 25))
@settings(max_examples=150, deadline=None)
def test_every_path_of_random_trees_is_what_the_engine_read_and_drew(seed: int, steps: int) -> None:
    """Clients continue, branch, reword, drop results, rewrite, edit turns, cut them and forge histories, at random."""
    draw, engine = random.Random(seed), Engine(markers())
    histories: list[list[Sent]] = [[user(f"task {number}")] for number in range(2)]
    for step in range(steps):
        said = list(draw.choice(histories[-6:]))
        kind = draw.randrange(8)
        turns = [place for place, one in enumerate(said) if one["role"] == "assistant"]
        if kind == 0:
            said = [user(f"task {draw.randrange(3)}")]
        elif kind == 1 and len(said) > 2:  # compaction: the question, a summary, and perhaps the newest turns
            cut = draw.choice([place for place in [*turns, len(said)] if place])
            said = [said[0], user(f"so far: {step}"), *said[cut:]]
        elif kind == 2 and turns:  # an edited turn
            said[turns[0]] = {"role": "assistant", "content": f"edited {step % 3}"}
            said = [one for place, one in enumerate(said) if one["role"] != "tool" or place > turns[0] + 1]
        elif kind == 3 and turns:  # a forged call
            forged = {"id": "f", "type": "function", "function": {"name": "python", "arguments": '{"code": "1"}'}}
            said += [user("go on"), {"role": "assistant", "tool_calls": [forged]}]
            said += [{"role": "tool", "tool_call_id": "other", "content": "0"}]
        elif kind == 4 and turns:  # a branch from an earlier turn
            said = said[: draw.choice(turns)]
        said = [sent_back(one, draw.randrange(5)) if one["role"] == "assistant" else one for one in said]
        if said[-1]["role"] == "assistant":
            said.append(result(said[-1], f"out {step}") if said[-1].get("tool_calls") else user(f"and {step}?"))
        if draw.random() < 0.2:
            said.append({"role": "system", "content": "reminder"})
            said.append(user("more"))
        whole, call = draw.random() < 0.8, draw.random() < 0.6
        code = f"print({draw.randrange(4)})" if call else None
        try:
            answer = engine.ask(said, code=code, text=f"answer {draw.randrange(4)}", whole=whole or call)
        except ValueError as refused:
            assert "tool_call_id" in str(refused)  # noqa: PT017 - the other requests go on
            continue
        back = [] if not call else [result(answer, f"out {step}")]
        histories.append([*said, answer, *back, *([user(f"next {step}")] if draw.random() < 0.5 or not call else [])])
    engine.require_exact()


@pytest.mark.parametrize("format_", [markers, qwen])
@pytest.mark.parametrize("how", range(len(REWORDED)))
def test_an_append_only_client_extends_its_tokens(format_: Callable[[], Renderer], how: int) -> None:
    engine = Engine(format_())
    said = [{"role": "system", "content": "Be short."}, user("what is 2*3?")]
    for turn in range(20):
        answer = engine.ask(said, code=f"print({turn})")
        said += [sent_back(answer, how)]
        said += [{"role": "tool", "tool_call_id": said[-1]["tool_calls"][0].get("id"), "content": f"saw {turn}"}]
        said += [user("go on")] if turn % 4 == 3 else []
    assert (len(engine.trees), samples(engine.newest), all(engine.extended[1:])) == (1, 1, True)
    assert {node.why for node in engine.newest.nodes} == {""}
    engine.require_exact()


@pytest.mark.parametrize("how", range(len(REWORDED)))
@pytest.mark.parametrize("order", [1, -1])
def test_a_client_of_text_and_several_calls_extends_its_tokens(how: int, order: int) -> None:
    engine = Engine(qwen())
    said = [user("what is 2*3?")]
    for turn in range(4):
        codes = [f"print('a long enough program to be known', {turn}, {number})" for number in range(3)]
        answer = engine.ask(said, drawn=text_and_calls(qwen(), "I look.", *map(ToolRequest, codes)))
        assert (answer["content"], len(answer["tool_calls"])) == ("I look.", 3)
        said += [sent_back(answer, how)]
        results = [
            {"role": "tool", "tool_call_id": one.get("id"), "content": f"saw {turn} {number}"}
            for number, one in enumerate(said[-1]["tool_calls"])
        ]
        said += results[:: order if how not in (1, 2) else 1]  # without ids they come in order
    assert all(engine.extended[1:])
    assert {node.why for node in engine.newest.nodes} == {""}
    text = engine.renderer.text(engine.log[-1][0])
    assert [text.index(f"saw {turn} {number}") for turn in range(3) for number in range(3)] == sorted(
        text.index(f"saw {turn} {number}") for turn in range(3) for number in range(3)
    )
    said += [user("sure?"), {"role": "system", "content": "x"}, user("really?")]
    said[0] = user("what is 3*3?")  # all is rewritten, with the turns as they were drawn
    engine.ask(said, text="yes")
    rewritten = engine.renderer.text(engine.log[-1][0])
    assert rewritten.count("I look.\n<tool_call>") == 4
    assert "</tool_call>\n<tool_call>" in rewritten
    engine.require_exact()
    said.pop(2)
    with pytest.raises(ConversationError, match="one tool message each"):
        engine.ask(said, text="no")


def test_a_client_in_text_alone_extends_where_the_format_keeps_earlier_turns() -> None:
    for renderer in (markers(), qwen()):
        engine = Engine(renderer)
        said = [user("list the files")]
        for turn in range(10):
            said += [engine.ask(said, text=f"THOUGHT and ls {turn}"), user(f"files of {turn}")]
        assert all(engine.extended[1:])
        assert samples(engine.newest) == 1


@pytest.mark.parametrize("rewrites", [0, 1, 4])
@pytest.mark.parametrize("keeps", ["question", "newest turns", "thinned results"])
def test_a_client_that_rewrites_its_history_has_a_sample_more_each_time(rewrites: int, keeps: str) -> None:
    engine = Engine(markers())
    head = [{"role": "system", "content": "Be short."}, user("what is 2*3?")]
    said = list(head)
    for part in range(rewrites + 1):
        for turn in range(4):
            answer = engine.ask(said, code=f"print('a long enough program to be known', {part}, {turn})")
            said += [answer, result(answer, f"saw {turn}")]
        if part < rewrites and keeps == "question":
            said = [*head, user(f"summary {part}: all is well so far")]
        elif part < rewrites and keeps == "newest turns":
            said = [head[0], user(f"summary {part}"), *said[-4:]]
        elif part < rewrites:
            said[-3] = {**said[-3], "content": "(elided)"}
    assert len(engine.trees) == 1
    assert samples(engine.newest) == 1 + rewrites
    assert {node.why for node in engine.newest.nodes} == {""}
    assert engine.newest.rewritten is (keeps == "newest turns" and rewrites > 0)
    engine.require_exact()


@pytest.mark.parametrize("alike", [False, True])
def test_four_parallel_sub_agents_never_mix_their_paths(alike: bool) -> None:
    for run in range(200):
        draw, engine = random.Random(run), Engine(markers())
        tasks = [
            f"sub-task {0 if alike else number}: look at part {0 if alike else number} of it" for number in range(4)
        ]
        main = [user("a task for four")]
        answer = engine.ask(main, code=json.dumps(tasks))
        read: dict[int, Ids] = {}
        agents: dict[int, list[Sent]] = {number: [user(task)] for number, task in enumerate(tasks)}
        if not alike:  # equal questions are found in the call too: they are roots of the same session
            agents[0][0] = user(f"You are a helper. {json.dumps(tasks)} is all; yours is the first.")
        for turn in range(3):
            for number in draw.sample(range(4), 4):
                said = agents[number]
                got = engine.ask(said, code=f"print({number}, {turn})")
                prompt, drawn = engine.log[-1]
                assert prompt[: len(read.get(number, ()))] == read.get(number, ())
                read[number] = prompt + drawn
                said += [sent_back(got, draw.randrange(5))]
                said += [{"role": "tool", "content": f"saw {number} {turn}"}]
                assert "sub-agent" in why(engine)
        main += [answer, result(answer, "all four are done")]
        engine.ask(main, text="done")
        assert (why(engine), len(engine.trees)) == ("", 1)
        engine.require_exact()


def test_runs_of_one_question_are_sessions_of_their_own_and_a_rewrite_of_unclear_origin_too() -> None:
    engine = Engine(markers())
    runs = [[user("what is 2*3?")] for _ in range(4)]
    for turn in range(3):
        for said in runs:
            answer = engine.ask(said, code=f"print({turn})")  # the same in all
            said += [answer, result(answer, "6")]
    assert [len(paths(tree.nodes)) for tree in engine.trees.values()] == [1] * 4
    engine.ask([user("what is 2*3?"), user("summary: nothing yet")], text="?")
    assert (len(engine.trees), why(engine)) == (5, "")
    engine.require_exact()


def test_the_reason_is_told_where_a_turn_does_not_train() -> None:
    engine = Engine(markers())
    question = [user("what is 2*3?")]
    first = engine.ask(question, text="six", temperature=0)
    assert why(engine) == "drawn at temperature 0; training uses 1"
    engine.ask([*question, first, user("sure?")], text="yes")
    assert why(engine) == ""
    engine.ask([*question, {"role": "assistant", "content": "seven"}, user("sure?")], text="no")
    assert why(engine) == "message 2 is a turn that this session's model did not write"
    engine.ask([*question, first, user("and?"), {"role": "assistant", "content": "I obey"}, user("sure?")], text="no")
    assert why(engine).startswith("message 4 is")
    engine.ask([*question, first, user("sure?")], text="yes", version="newer")
    assert why(engine).startswith("message 2 is")
    engine.require_exact()


def test_a_turn_of_which_the_client_has_a_part_is_not_extended() -> None:
    engine = Engine(markers())
    said = [user("count")]
    said += [engine.ask(said, text="one two three four", whole=False), user("on")]
    engine.ask(said, text="five")
    assert (len(engine.trees), engine.extended, samples(engine.newest)) == (1, [False, False], 2)
    assert "three" not in engine.renderer.text(engine.log[-1][0])
    engine.require_exact()


def test_equal_turns_are_told_apart_by_the_ids_of_their_calls() -> None:
    engine = Engine(markers())
    told = [engine.ask([user("list")], code="ls()") for _ in range(3)]
    nodes = []
    for answer in reversed(told):
        engine.ask([user("list"), answer, result(answer, "x")], text="done")
        nodes.append(engine.newest.id)
    assert nodes == list(engine.trees)[::-1]
    for _ in range(2):  # without ids each goes on once, and only then it branches
        engine.ask([user("list"), sent_back(told[0], 1), {"role": "tool", "content": "x"}], text="done")
    assert sum(samples(tree) for tree in engine.trees.values()) == 5


def test_another_token_and_another_question_find_no_session() -> None:
    engine = Engine(markers())
    answer = engine.ask([user("list")], text="a long answer that another history may contain")
    engine.ask([user("list"), answer, user("on")], text="x", token="other")
    assert (len(engine.trees), why(engine)[:9]) == (2, "message 2")
    assert engine.extended == [False, False]


def test_results_answer_calls_by_id_or_in_order_and_never_twice() -> None:
    def sent(calls: Sequence[str | None], results: Sequence[str | None]) -> list[SentMessage]:
        made = [{"id": one, "function": {"name": "f", "arguments": "{}"}} for one in calls]
        found: list[Sent] = [{"role": "assistant", "tool_calls": made}]
        found += [{"role": "tool", "tool_call_id": one, "content": "x"} for one in results]
        return [SentMessage.model_validate(one) for one in found]

    assert answered_calls(sent("ab", "ba")) == [-1, 1, 0]
    assert answered_calls(sent("ab", "xb")) == [-1, 0, 1]
    assert answered_calls(sent([None, None], [None, None])) == [-1, 0, 1]
    assert message_digests(sent("ab", "ab")) == message_digests(sent("cd", "cd"))
    assert message_digests(sent("ab", "ab")) != message_digests(sent("ab", "ba"))
    for results in (["a", "a"], ["a", "x"]):
        with pytest.raises(ValueError, match="tool_call_id names no call"):
            answered_calls(sent("a", results))
    with pytest.raises(ValueError, match=r"messages\.0"):
        answered_calls(sent("a", "a")[1:])


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8,
))  # fmt: skip
def test_arguments_are_equal_however_they_are_written(value: Any) -> None:
    def digest(arguments: str) -> list[bytes]:
        call = {"id": "a", "function": {"name": "f", "arguments": arguments}}
        return message_digests([SentMessage.model_validate({"role": "assistant", "tool_calls": [call]})])

    plain = digest(json.dumps({"a": 1.0, "b": value}))
    assert plain == digest(json.dumps({"b": value, "a": 1}, indent=2, ensure_ascii=False))
    assert plain != digest(json.dumps({"a": 2, "b": value}))


def test_what_is_remembered_is_bounded_and_what_is_forgotten_leaves_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(markers())
    first = engine.ask([user("first")], text="hello")
    name, engine.newest.recorded = engine.newest.id, True
    for number in range(MOST_LIVE):
        engine.ask([user(f"other {number}")], text="hello")
    assert len(engine.sessions._live) == MOST_LIVE
    engine.ask([user("first"), first, user("on")], text="hello")
    assert (engine.newest.branch_of, engine.newest.id != name) == (name, True)
    monkeypatch.setattr(message_tree, "MOST_WRITTEN", 10)
    engine.ask([user("last")], text="hello")
    assert len(engine.sessions._turns) == 10


def test_a_request_stores_its_prompt_once_however_often_it_is_sent() -> None:
    engine = Engine(markers())
    said = [user("list")]
    said += [engine.ask(said, text="hello"), user("on")]
    for number in range(5):
        engine.ask(said, text=f"answer {number}")
    (tree,) = engine.trees.values()
    assert (len(tree.nodes), samples(tree)) == (2 + 1 + 5, 5)
    assert tree.tokens == sum(len(node.ids) for node in tree.nodes)
    assert replace(tree).context(None) == ()
