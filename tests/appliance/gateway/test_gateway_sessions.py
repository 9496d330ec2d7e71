"""What is kept of an owner's sessions: with consent, token by token, redacted, judged, deleted; and what is learned."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from appliance.gateway import conversation, sessions
from appliance.gateway.chat_request import ClientTool
from appliance.gateway.keeping import CheckedAnswer, SessionKeeper
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
    # A person goes on: the model's turns stay as they were drawn, in a new sample.
    messages += [second.choices[0].message, {"role": "user", "content": "sure?"}]
    third = gateway.ask(messages=messages, tools=[LOOK], token="agent")
    found = gateway.kept.get(third.assay["session"])
    assert (third.assay["session"], sum(node.parent is None for node in found.nodes)) == (first.assay["session"], 2)
    assert "a conversation" in why_no_task(found.model_copy(update=PASSED))
    # The same question once more in another way is another session.
    other = gateway.ask(messages=[*messages[:-1], {"role": "user", "content": "why?"}], tools=[LOOK], token="agent")
    assert other.assay["session"] not in (None, first.assay["session"])


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
        monkeypatch.setattr(conversation, "MOST_LIVE", 3)
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
