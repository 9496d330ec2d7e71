"""What is kept of an owner's sessions: with consent, token by token, redacted, judged, deleted; and what is learned."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from gateway_kit import until

from appliance.gateway import message_tree, sessions
from appliance.gateway.chat_request import ChatRequest, ClientTool
from appliance.gateway.keeping import CheckedAnswer, SessionKeeper
from appliance.gateway.replies import CHAT
from appliance.gateway.server import KnownTokens
from appliance.gateway.sessions import (
    KeptSession,
    KeptSessionError,
    KeptSessions,
    KeptSessionsFullError,
    SaidText,
    last_day,
    passed_session,
    why_no_task,
)
from appliance.records.rollouts import paths
from appliance.rendering.renderer import ToolRequest
from appliance.system.clock import utc_now
from appliance.text.redaction import USUAL, Redaction
from verifiers.answers.spec import AnswerSpec
from verifiers.contract.verdict import Outcome, Verdict

LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Looks.",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
    },
}
TOOLS = (ClientTool(**LOOK["function"]),)
CHECK = {"assay": {"check": {"kind": "answer", "expected": "6"}}}
SECRET = "sk-" + "a1b2c3d4" * 4


def verdict(outcome: Outcome = Outcome.PASS) -> Verdict:
    return Verdict(
        outcome=outcome, score=float(outcome is Outcome.PASS), reason="so", verifier="v", version="1", seconds=0.0
    )


def kept(**fields: Any) -> KeptSession:
    known = {
        "id": "gs-0123456789abcdef",
        "token": "agent",
        "created": utc_now(),
        "updated": utc_now(),
        "expires": last_day(utc_now(), 30.0),
        "version": "v1",
        "said": (SaidText(role="user", text="2*3?"), SaidText(role="assistant", text=r"\boxed{6}")),
        "questions": 1,
        "answer": r"\boxed{6}",
    }
    return KeptSession.model_validate({**known, **fields})


PASSED = {"spec": AnswerSpec(expected="6"), "submission": "6", "verdict": verdict()}


def test_a_session_is_kept_token_by_token_as_it_was_sampled(gateway) -> None:
    gateway.says(gateway.renderer.request(ToolRequest(tool="look", arguments={"at": "sky"}), TOOLS))
    messages: list[Any] = [{"role": "user", "content": "what is 2*3?"}]
    first = gateway.ask(messages=messages, tools=[LOOK], token="agent", extra_body=CHECK)
    assert first.assay["verdict"] is None
    call = first.choices[0].message.tool_calls[0]
    messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "<|im_end|>six"}]
    gateway.says(gateway.renderer.answer(r"\boxed{6}"))
    second = gateway.ask(messages=messages, tools=[LOOK], token="agent", extra_body=CHECK)
    assert (second.assay["session"], second.assay["verdict"]["outcome"]) == (first.assay["session"], "pass")
    found = gateway.kept.get(second.assay["session"])
    prompt = gateway.engine.requests[max(gateway.engine.requests)].prompt
    ids = tuple(token for node in found.nodes for token in node.ids)
    assert ids == prompt + gateway.renderer.answer(r"\boxed{6}")  # what the model read is what was kept
    assert [(node.sampled, len(node.ids) == len(node.logprobs)) for node in found.nodes if node.sampled] == [
        (True, True)
    ] * 2
    assert {span.version for node in found.nodes for span in node.weights} == {"v1"}
    assert found.nodes[2].call.arguments == {"at": "sky"}
    task = passed_session(found)
    assert (task.question, task.submission) == ("what is 2*3?", "6")
    # A person goes on: the format drops the thoughts of earlier turns, which is a new sample.
    messages += [second.choices[0].message, {"role": "user", "content": "sure?"}]
    third = gateway.ask(messages=messages, tools=[LOOK], token="agent")
    found = gateway.kept.get(third.assay["session"])
    assert (third.assay["session"], len(paths(found.nodes))) == (first.assay["session"], 2)
    assert "a conversation" in why_no_task(found.model_copy(update=PASSED))
    # Another way to go on is another path of the session, which begins with the same tokens.
    other = gateway.ask(messages=[*messages[:-1], {"role": "user", "content": "why?"}], tools=[LOOK], token="agent")
    found = gateway.kept.get(other.assay["session"])
    assert (found.id, len(paths(found.nodes)), found.said[-2].text) == (first.assay["session"], 3, "why?")
    assert all(node.trains for node in found.nodes if node.sampled)


def test_an_agent_with_reworded_calls_reminders_and_sub_agents_has_one_session_and_one_verdict(gateway) -> None:
    task = "find out which of the two cities is warmer in the summer"
    gateway.says(gateway.renderer.request(ToolRequest(tool="look", arguments={"at": task}), TOOLS))
    messages: list[Any] = [{"role": "user", "content": "how is 2*3 in summer?"}]
    first = gateway.ask(messages=messages, tools=[LOOK], token="agent")
    gateway.says(gateway.renderer.answer(r"\boxed{5}"))
    sub = gateway.ask(f"You are a sub-agent. {task}.", token="agent")
    call = {"type": "function", "function": {"name": "look", "arguments": json.dumps({"at": task}, indent=4)}}
    messages += [{"role": "assistant", "content": "", "tool_calls": [{"id": "mine", **call}], "reasoning": "well"}]
    messages += [{"role": "tool", "tool_call_id": "mine", "content": "the first"}]
    gateway.says(gateway.renderer.answer(r"\boxed{6}"))
    second = gateway.ask(messages=messages, tools=[LOOK], token="agent", extra_body=CHECK)
    gateway.says(gateway.renderer.answer("why not"))
    alone = gateway.ask(f"You are a sub-agent. {task}.", token="agent", extra_body=CHECK)
    assert {one.assay["session"] for one in (first, sub, second)} == {first.assay["session"]}
    assert alone.assay["session"] != first.assay["session"]
    found = gateway.kept.get(first.assay["session"])
    assert (found.verdict.outcome, found.answer.strip(), len(found.said)) == (Outcome.PASS, r"\boxed{6}", 4)
    assert [node.why for node in found.nodes if node.sampled] == ["", "it is a sub-agent's", ""]
    assert (found.nodes[-1].parent, found.nodes[-2].parent) == (len(found.nodes) - 2, 1)
    reminder = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "and colder?"}]
    messages += [second.choices[0].message, *reminder]
    assert gateway.ask(messages=messages, tools=[LOOK], token="agent").assay["session"] == found.id
    prompt = gateway.renderer.text(gateway.engine.requests[max(gateway.engine.requests)].prompt)
    assert "<system-reminder>\nBe brief.\n</system-reminder>" in prompt


def test_agents_that_run_at_once_keep_their_paths_apart(gateway) -> None:
    """Four sub-agents of one call, with one token, each with a history of its own."""
    tasks = [f"look at quarter {number} of the sky for stars" for number in range(4)]
    gateway.says(gateway.renderer.request(ToolRequest(tool="look", arguments={"at": "; ".join(tasks)}), TOOLS))
    main = gateway.ask("all of the sky?", tools=[LOOK], token="agent")
    gateway.says(lambda known: (*gateway.renderer.plain(f"stars {hash(known) % 997}"), gateway.renderer.stop))

    def run(number: int) -> None:
        said: list[Any] = [{"role": "user", "content": tasks[number]}]
        for turn in range(5):
            answer = gateway.ask(messages=said, token="agent")
            assert answer.assay["session"] == main.assay["session"]
            said += [answer.choices[0].message, {"role": "user", "content": f"more of {number}, {turn}"}]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    nodes = gateway.kept.get(main.assay["session"]).nodes
    texts = [gateway.renderer.text([one for at in path for one in nodes[at].ids]) for path in paths(nodes)]
    assert sorted(text.count("stars ") for text in texts) == [0, 5, 5, 5, 5]
    for number, task in enumerate(tasks):
        (text,) = (text for text in texts if text.startswith(f"<|im_start|>user\n{task}"))
        assert text.count(f"more of {number}") == 4
        assert sum(text.count(f"more of {other}") for other in range(4)) == 4


def test_forged_histories_are_refused_or_do_not_train(gateway) -> None:
    first = gateway.ask("a question of mine", token="agent", temperature=0.5)
    said = [{"role": "user", "content": "a question of mine"}, first.choices[0].message]
    more = gateway.ask(messages=[*said, {"role": "user", "content": "on"}], token="agent")
    edited = [said[0], {"role": "assistant", "content": "I obey"}, {"role": "user", "content": "on"}]
    other = gateway.ask(messages=edited, token="agent")
    reasons = [node.why for node in gateway.kept.get(more.assay["session"]).nodes if node.sampled]
    assert reasons == ["drawn at temperature 0.5; training uses 1", ""]
    assert other.assay["session"] != more.assay["session"]
    assert gateway.kept.get(other.assay["session"]).nodes[-1].why.startswith("message 2 is a turn that")
    for forged in (
        [said[0], {"role": "tool", "tool_call_id": "x", "content": "root"}],
        [*said, {"role": "tool", "tool_call_id": "x", "content": "root"}],
    ):
        with pytest.raises(openai.BadRequestError, match="tool_call_id names no call"):
            gateway.ask(messages=forged, token="agent")


@pytest.mark.parametrize("stream", [False, True])
def test_a_retry_gets_the_answer_that_it_missed_and_another_request_its_own(gateway, stream: bool) -> None:
    def sent(count: str | None, text: str = f"retried {stream}") -> tuple[str, str]:
        headers = {} if count is None else {"x-stainless-retry-count": count}
        messages: list[Any] = [{"role": "user", "content": text}]
        with gateway.client("agent") as client:
            made = client.chat.completions.create
            answer = made(model="champion", messages=messages, stream=stream, extra_headers=headers)
            parts = list(answer) if stream else [answer]
        return parts[0].id, parts[-1].assay["session"]

    first, steps = sent("0"), gateway.engine.steps
    assert sent("1") == sent("2") == first
    assert gateway.engine.steps == steps
    others = [sent("0"), sent(None), sent("1", "never sent before"), sent("x" * 500, "another")]
    assert len({first, *others}) == 5
    assert len({session for _, session in others}) == 4


def test_a_retry_waits_for_the_first_attempt_that_is_under_way(gateway) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def slow(_: object) -> tuple[int, ...]:
        asked.set()
        assert go_on.wait(120)
        return tuple(gateway.renderer.answer("hello"))

    gateway.says(slow)
    with ThreadPoolExecutor(2) as pool:
        sent = [
            pool.submit(gateway.ask, "slow", token="agent", extra_headers={"x-stainless-retry-count": count})
            for count in "01"
            if count == "0" or asked.wait(120)
        ]
        until(lambda: gateway.api._under_way == 2)
        go_on.set()
        first, second = (one.result(120) for one in sent)
    assert (first.id, first.assay["session"]) == (second.id, second.assay["session"])


def test_nothing_is_kept_without_consent(gateway) -> None:
    before = gateway.kept.names()
    assert gateway.ask("my secret plan", extra_body=CHECK).assay["session"] is None
    assert gateway.kept.names() == before


def test_what_a_rule_of_redaction_names_is_written_nowhere(gateway) -> None:
    for asked, answered in ((f"my key is {SECRET}", "fine"), ("say it", f"here: {SECRET} \\boxed{{6}}")):
        gateway.says(gateway.renderer.answer(answered))
        said = gateway.ask(asked, token="agent", extra_body=CHECK)
        assert answered.strip() in said.choices[0].message.content
        path = gateway.kept.folder / f"{said.assay['session']}.json"
        assert SECRET not in path.read_text()
        found = gateway.kept.get(said.assay["session"])
        assert (found.redacted, found.nodes, found.verdict) == (True, (), None)
        assert (found.said, found.answer, found.spec, found.turns, found.questions) == ((), "", None, 1, 1)
        assert "rule 2 of gateway.redact" in why_no_task(found)
    for path in gateway.data.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()


def test_a_session_gets_its_verdict_later_from_its_own_token_alone(gateway) -> None:
    gateway.says(gateway.renderer.answer(r"It is \boxed{6}."))
    name = gateway.ask("3+3?", token="agent").assay["session"]

    def judge(token: str, **check: Any) -> httpx.Response:
        url = f"http://127.0.0.1:{gateway.port}/v1/assay/sessions/{name}/verdict"
        return httpx.post(url, json={"check": check}, headers={"Authorization": f"Bearer {gateway.secrets[token]}"})

    assert judge("other", kind="answer", expected="6").status_code == 404
    assert judge("agent", kind="answer", expected="5").json()["verdict"]["outcome"] == "fail"
    assert passed_session(gateway.kept.get(name)) is None
    assert judge("agent", kind="answer", expected="6").json()["verdict"]["outcome"] == "pass"
    assert passed_session(gateway.kept.get(name)) is not None
    assert judge("agent", kind="magic").json()["error"]["type"] == "invalid_request_error"


def test_an_answer_that_was_cut_off_does_not_pass_later_either(gateway) -> None:
    turn = gateway.renderer.answer(r"\boxed{6} and so on")
    gateway.says(turn)
    said = gateway.ask("3+3?", token="agent", max_tokens=len(turn) - 2)
    assert (said.choices[0].finish_reason, r"\boxed{6}" in said.choices[0].message.content) == ("length", True)
    url = f"http://127.0.0.1:{gateway.port}/v1/assay/sessions/{said.assay['session']}/verdict"
    asked = {"check": {"kind": "answer", "expected": "6"}}
    found = httpx.post(url, json=asked, headers={"Authorization": f"Bearer {gateway.secrets['agent']}"}).json()
    assert (found["verdict"]["outcome"], "cut off" in found["verdict"]["reason"]) == ("fail", True)
    assert passed_session(gateway.kept.get(said.assay["session"])) is None


def test_a_verdict_on_an_answer_never_reaches_a_newer_one(tmp_path: Path) -> None:
    files = KeptSessions(tmp_path)
    keeper = SessionKeeper(files, Redaction(USUAL), 30.0, utc_now)
    first, newer = kept(turns=1), kept(turns=2, answer=r"\boxed{7}")
    files.put(newer, new=True)
    assert keeper.judge(first, CheckedAnswer("6", AnswerSpec(expected="6"), verdict())) is False
    assert files.get(first.id) == newer
    assert files.put(newer.model_copy(update={"updated": "2026-12-01T00:00:00Z"}), new=False)  # a sub-agent's turn
    assert keeper.judge(newer, CheckedAnswer("7", AnswerSpec(expected="7"), verdict())) is True
    assert files.get(first.id).submission == "7"


def test_a_session_that_was_deleted_is_never_written_again(gateway) -> None:
    messages: list[Any] = [{"role": "user", "content": "remember this"}]
    first = gateway.ask(messages=messages, token="agent")
    gateway.kept.delete(first.assay["session"])
    for again in range(2):
        messages += [{"role": "assistant", "content": "hello"}, {"role": "user", "content": f"and {again}"}]
        assert gateway.ask(messages=messages, token="agent").assay["session"] is None
    assert first.assay["session"] not in gateway.kept.names()


@pytest.mark.parametrize("how", ["forgotten", "another model", "other tools", "cut off", "edited"])
def test_a_session_that_was_deleted_does_not_come_back_where_its_conversation_begins_anew(
    gateway, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    messages: list[Any] = [{"role": "user", "content": f"remember this: {how}"}]
    first = gateway.ask(messages=messages, token="agent", max_tokens=1 if how == "cut off" else 100)
    said = first.choices[0].message.content
    messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "and?"}]
    if how == "edited":
        second = gateway.ask(messages=messages, token="agent")
        assert second.assay["session"] == first.assay["session"]
        messages += [{"role": "assistant", "content": "no, that"}, {"role": "user", "content": "go on"}]
    gateway.kept.delete(first.assay["session"])
    kept_before = gateway.kept.names()
    if how == "forgotten":
        monkeypatch.setattr(message_tree, "MOST_LIVE", 3)
        for number in range(4):
            assert gateway.ask(text=f"other {number}", token="agent").assay["session"]
    if how == "another model":
        monkeypatch.setattr(gateway, "model", replace(gateway.model, version="v2"))
        monkeypatch.setattr(gateway.engine, "version", "v2")
    tools = {"tools": [LOOK]} if how == "other tools" else {}
    for _ in range(2):
        answer = gateway.ask(messages=messages, token="agent", **tools)
        assert answer.assay["session"] is None
        messages += [answer.choices[0].message, {"role": "user", "content": "and then?"}]
    assert all(f"remember this: {how}" not in one.model_dump_json() for one in gateway.kept.all())
    assert set(kept_before) <= set(gateway.kept.names())


def test_a_turn_that_is_too_large_to_be_kept_has_no_session_and_no_verdict_on_the_answer_before(
    gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[Any] = [{"role": "user", "content": "2*3, at length?"}]
    gateway.says(gateway.renderer.answer(r"\boxed{6}"))
    first = gateway.ask(messages=messages, token="agent", extra_body=CHECK)
    messages += [{"role": "assistant", "content": r"\boxed{6}"}, {"role": "user", "content": "and 2*4?"}]
    gateway.says(gateway.renderer.answer(r"\boxed{9}"))
    with monkeypatch.context() as patch:
        patch.setattr(sessions, "MOST_BYTES", 100)
        assert gateway.ask(messages=messages, token="agent").assay["session"] is None
    assert gateway.kept.get(first.assay["session"]).answer == r"\boxed{6}"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "no verdict"),
        ({**PASSED, "verdict": verdict(Outcome.FAIL)}, "fail"),
        ({**PASSED, "verdict": verdict(Outcome.INFRA_ERROR)}, "infra_error"),
        ({**PASSED, "verdict": verdict(Outcome.HACK_SUSPECTED)}, "hack_suspected"),
        ({**PASSED, "submission": None}, "no answer"),
        ({**PASSED, "questions": 2}, "conversation"),
        ({**PASSED, "rule": 1}, "redact"),
    ],
)
def test_nothing_is_learned_without_a_verdict_that_passed(fields: dict[str, Any], why: str) -> None:
    assert why in why_no_task(kept(**fields))
    assert passed_session(kept(**fields)) is None


def test_old_sessions_are_deleted_and_only_sessions_are(tmp_path: Path) -> None:
    files = KeptSessions(tmp_path)
    gone = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    for digit, expires in (("1", gone), ("2", last_day(utc_now(), 30.0))):
        files.put(kept(id=f"gs-{digit * 16}", expires=expires), new=True)
    (files.folder / "notes.json").write_text("{}")
    assert files.expire(utc_now(), 30.0) == 1  # though it was written now, as a copy from a backup is
    old = time.time() - 40 * 86_400
    os.utime(files.folder / f"gs-{'2' * 16}.json", (old, old))
    assert files.expire(utc_now(), 30.0) == 0
    assert files.names() == [f"gs-{'2' * 16}"]
    later = (datetime.now(UTC) + timedelta(days=31)).isoformat()
    assert files.expire(later, 30.0) == 1
    assert (files.folder / "notes.json").exists()
    assert (files.folder.stat().st_mode & 0o77, [*files.all()]) == (0, [])
    with pytest.raises(KeptSessionError, match="invalid session id"):
        files.get("../../tokens")


def test_of_a_private_key_no_word_is_kept(gateway) -> None:
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
    asked = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"
    for question in (asked, asked.partition("\n-----END")[0]):
        name = gateway.ask(question, token="agent").assay["session"]
        assert body not in (gateway.kept.folder / f"{name}.json").read_text()
        assert gateway.kept.get(name).rule == 1


@pytest.mark.parametrize("before", ["\n", "\t", "\r\n", "\u00e9\n"])
def test_a_secret_behind_an_escape_is_found_in_calls_and_checks(gateway, before: str) -> None:
    hidden = f"see{before}{SECRET}"
    gateway.says(gateway.renderer.request(ToolRequest(tool="look", arguments={"at": hidden}), TOOLS))
    called = gateway.ask("look", token="agent", tools=[LOOK]).assay["session"]
    gateway.says(gateway.renderer.answer(r"\boxed{6}"))
    checked = gateway.ask("check", token="agent").assay["session"]
    found = CheckedAnswer("6", AnswerSpec(expected=hidden), verdict())
    SessionKeeper(gateway.kept, Redaction(USUAL), 30.0, utc_now).judge(gateway.kept.get(checked), found)
    output = gateway.ask(json.dumps({"log": [json.dumps({"out": hidden})]}), token="agent").assay["session"]
    for name in (called, checked, output):
        assert SECRET not in (gateway.kept.folder / f"{name}.json").read_text()
        assert gateway.kept.get(name).rule == 2


def test_no_more_sessions_are_kept_than_the_bounds_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = KeptSessions(tmp_path)
    files.put(kept(), new=True)
    for bound in ("MOST_SESSIONS", "MOST_TOTAL_BYTES"):
        with monkeypatch.context() as patch:
            patch.setattr(sessions, bound, 1)
            with pytest.raises(KeptSessionsFullError, match="the session store is full"):
                files.put(kept(id=f"gs-{'2' * 16}"), new=True)
            assert files.put(kept(answer="new"), new=False) is True  # one that is there goes on
    assert files.names() == [kept().id]


def test_redaction_finds_keys_in_any_text_and_says_which_rules_are_none() -> None:
    rules = Redaction(USUAL)
    for secret in (SECRET, "ghp_" + "x" * 30, "AKIA" + "A" * 16, "Authorization: Bearer " + "t" * 20):
        for value in (f"a {secret} b", {"a": [f"b\n{secret}"]}, {secret: 1}, json.dumps(json.dumps(f"\t{secret}"))):
            assert rules.rule_in(["nothing", value])
    assert rules.rule_in(["nothing here", {"a": ["sk-", None, 1.5]}, "[" * 100_000]) is None
    for wrong in ("(", "", "x*"):
        with pytest.raises(ValueError, match=r"regular expression|matches"):
            Redaction((wrong,))


def test_redaction_reads_a_character_that_an_escape_writes_in_halves_or_in_eight_digits() -> None:
    rules = Redaction(("\N{KEY}[0-9]{4}",))
    for text in (r'said: {"k": "\ud83d\udd111234"}', r'print("\U0001f5111234")', r"\\ud83d\\udd111234"):
        assert rules.rule_in([text]) == 1
    assert rules.rule_in([r"\ud83d1234 \U99999999 \ud83d"]) is None


def test_what_is_kept_is_plain_json(gateway) -> None:
    name = gateway.ask("plain?", token="agent").assay["session"]
    found = json.loads((gateway.kept.folder / f"{name}.json").read_bytes())
    assert (found["token"], found["said"][0]) == ("agent", {"role": "user", "text": "plain?"})


@pytest.mark.parametrize(("events", "why"), [(2, "its stream was not read to the end"), (100, "")])
def test_an_answer_that_its_client_did_not_read_to_the_end_is_kept_and_not_trained_on(
    gateway, events: int, why: str
) -> None:
    said = "one two three four five six " * 20
    gateway.says(gateway.renderer.answer(said))
    token = next(one for one in KnownTokens(gateway.data)() if one.name == "agent")
    messages = [{"role": "user", "content": f"read {events}?"}]
    asked = ChatRequest.model_validate({"model": "champion", "messages": messages, "stream": True})
    before = set(gateway.kept.names())

    async def read_some() -> None:
        stream = gateway.api._stream(gateway.api._prepared(CHAT, asked, token, ""))
        async for _ in stream:
            nonlocal events
            events -= 1
            if not events:
                break
        await stream.aclose()

    asyncio.run(read_some())
    (name,) = set(gateway.kept.names()) - before
    (drawn,) = [one for one in gateway.kept.get(name).nodes if one.sampled]
    assert (drawn.why, drawn.trains) == (why, not why)
    more = [*messages, {"role": "assistant", "content": said}, {"role": "user", "content": "more"}]
    assert gateway.ask(messages=more, token="agent").assay["session"] == name
    assert [one.why for one in gateway.kept.get(name).nodes if one.sampled] == [why, ""]
