"""What others wrote is learned from once it was verified here: recorded conversations, and a teacher's."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch
from short_nights import AT, FIXTURE, train_night
from test_stages import put_training, stage, texts

from appliance.inference.adapters import weights_digest
from appliance.inference.folder import open_model
from appliance.inference.http.local_api import EndpointError, require_local
from appliance.learning.checkpoints import publish
from appliance.learning.errors import LearningError
from appliance.learning.folders import read_verified
from appliance.learning.rank_processes import RankProcesses
from appliance.learning.recipes.stages import TeacherRecipe, refusal
from appliance.learning.training.trainer import Trainer
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import Checkpoint
from appliance.worker.setup.context import WorkContext
from appliance.worker.sft.teacher import Teacher, TeacherTally
from appliance.worker.sft.traces import (
    RecordedTrace,
    TraceError,
    TraceTally,
    VerifiedTrace,
    read_kept,
    read_traces,
    verified,
)
from appliance.worker.stages import ChangedTracesError, UnlikeTeacherError
from curriculum.contract.task import Split, Task
from curriculum.registry import BUILT_IN
from curriculum.separation.index import SeparationIndex
from runtime.errors import InfrastructureError
from runtime.sandbox import SessionPool, Tier
from runtime.sessions import Sessions
from runtime.settings import RuntimeSettings
from verifiers.contract.verdict import Outcome, Verdict


def conversation(answer: str, *, question: str = "what is 6*7?", code: str = "print(6*7)") -> dict[str, Any]:
    call = {"type": "function", "function": {"name": "python", "arguments": json.dumps({"code": code})}}
    return {
        "messages": [
            {"role": "user", "content": question},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "a result that somebody made up"},
            {"role": "assistant", "content": f"\\boxed{{{answer}}}"},
        ],
        "spec": {"kind": "answer", "expected": "42"},
    }


def lines(*conversations: dict[str, Any]) -> bytes:
    return "".join(f"{json.dumps(one)}\n" for one in conversations).encode()


class _Api(BaseHTTPRequestHandler):
    """Speaks the chat API of OpenAI: a call of the tool first, then what the tool printed."""

    protocol_version = "HTTP/1.1"
    answers: dict[str, str]
    asked: list[dict[str, Any]]
    refused: dict[tuple[str, str], int]
    """The status that a question gets whose last message has that role."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append(body)
        question = body["messages"][0]["content"].partition("\nEnd with the answer in one")[0]
        expected = self.answers[question]
        last = body["messages"][-1]
        if status := self.refused.get((question, last["role"])):
            return self._write(status, {"error": {"message": "The maximum context length is 64 tokens."}})
        said: dict[str, Any] = {"role": "assistant", "content": None}
        if last["role"] == "user":
            # Every second try at a task is wrong.
            value = expected if body["seed"] % 2 else f"{expected}1"
            function = {"name": "python", "arguments": json.dumps({"code": f"print({value!r})"})}
            said["tool_calls"] = [{"id": "c1", "type": "function", "function": function}]
        else:
            said["content"] = f"It is \\boxed{{{last['content']}}}"
        choices = [{"index": 0, "finish_reason": "stop", "message": said}]
        whole = {"id": "x", "object": "chat.completion", "created": 0, "model": body["model"], "choices": choices}
        return self._write(200, whole)

    def _write(self, status: int, content: dict[str, Any]) -> None:
        answer = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_arguments: object) -> None: ...


@contextmanager
def served() -> Iterator[tuple[str, type[_Api]]]:
    handler = type("Api", (_Api,), {"answers": {}, "asked": [], "refused": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", handler
    finally:
        server.shutdown()
        server.server_close()


def test_a_training_learns_from_a_file_a_teacher_and_a_model_that_scores(
    context: WorkContext, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = lines(conversation("42"), conversation("41"), conversation("6", code="print(6)"))
    digest = hashlib.sha256(content).hexdigest()
    (context.data / "traces").mkdir()
    (context.data / "traces" / digest).write_bytes(content)
    scorer = publish(FIXTURE, context.data / "models")
    real = Teacher.traces
    with served() as (url, api):

        def known(teacher: Teacher, tasks: list[Task], *, caller: str) -> Any:
            api.answers.update({task.question: task.spec.expected for task in tasks})
            return real(teacher, tasks, caller=caller)

        monkeypatch.setattr(Teacher, "traces", known)
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        put_training(
            context,
            "t",
            stage("file", "sft", data="file", file=digest),
            stage("teacher", "sft", data="teacher", teacher=TeacherRecipe(base_url=url, model="m", tasks=5, samples=3)),
            stage("scored", "distil", scored_by=scorer),
        )
        train_night(context, "t")
    cycle = ledger.cycle("t")
    assert cycle is not None
    of_file, of_teacher = (read_kept(context.data / "traces" / cycle.plan[f"stage_{n}"]["traces"]) for n in (1, 2))
    assert [(one.results, one.source) for one in of_file] == [(("42",), f"sha256:{digest}:1")]
    assert len(of_teacher) == len({one.task.id for one in of_teacher}) == 5
    assert all(one.verdict.passed and one.source == f"{url} m" for one in of_teacher)
    assert len(api.asked) == 5 * 3 * 2
    told = texts(ledger, "traces")
    assert told[0].startswith("1 of 3 conversations are used for training: 2 failed their check")
    assert told[1].startswith("5 of 15 conversations are used for training: 10 failed their check")
    record = ledger.step("t", 0)
    assert record is not None
    assert {group.selector for group in record.groups} == {"teacher"}
    figures = [event.figures for _, event in ledger.events(limit=1000) if event.kind == "step"]
    assert [one["learning_reverse_kl"] != 0 for one in figures] == [True, True]
    assert cycle.plan["candidate"] != cycle.plan["start"]


def taught(url: str, tasks: list[Task], context: WorkContext) -> TeacherTally:
    recipe = TeacherRecipe(base_url=url, model="m", samples=2)
    with Teacher(recipe, context.sessions, context.policy, max_calls=4, max_result_chars=100) as teacher:
        return teacher.traces(tasks, caller="t")


def test_a_conversation_that_a_teacher_cannot_finish_takes_no_other_with_it(context: WorkContext) -> None:
    tasks = [BUILT_IN.task("arithmetic", 1, 4 * number, Split.TRAIN) for number in range(3)]
    too_long, outgrows, fine = (task.question for task in tasks)
    with served() as (url, api):
        api.answers.update({task.question: task.spec.expected for task in tasks})
        api.refused.update({(too_long, "user"): 400, (outgrows, "tool"): 400})
        tally = taught(url, tasks, context)
        assert [one.task.question for one in tally.traces] == [fine, fine]
        assert (tally.lost, tally.down) == (2, False), "what outgrew it was given up"
        with pytest.raises(
            InfrastructureError, match=r"every conversation with the teacher failed: .*maximum context length"
        ):
            taught(url, tasks[:1], context)


def test_a_teacher_that_goes_down_is_asked_no_more_and_what_it_said_is_there(context: WorkContext) -> None:
    tasks = [BUILT_IN.task("arithmetic", 1, 4 * number, Split.TRAIN) for number in range(40)]
    with served() as (url, api):
        api.answers.update({task.question: task.spec.expected for task in tasks})
        api.refused.update({(task.question, "user"): 404 for task in tasks[1:]})
        tally = taught(url, tasks, context)
    assert (len(tally.traces), tally.lost, tally.down) == (2, 2 * 39, True)


def test_a_learner_in_a_process_of_its_own_learns_from_a_file_and_from_a_teacher_as_one_here_would(
    context: WorkContext, ledger: SqliteLedger
) -> None:
    """As on a GPU; on the processor the recorded steps give the same weights here, to the bit."""
    content = lines(conversation("42"))
    digest = hashlib.sha256(content).hexdigest()
    (context.data / "traces").mkdir()
    (context.data / "traces" / digest).write_bytes(content)
    scorer = publish(FIXTURE, context.data / "models")
    torch.set_num_threads(1)
    context.ranks = RankProcesses(("cpu",), threads=1)
    scored = stage("scored", "distil", scored_by=scorer)
    put_training(context, "t", stage("file", "sft", data="file", file=digest), scored)
    train_night(context, "t")
    cycle = ledger.cycle("t")
    assert cycle is not None
    models = (cycle.plan["start"], cycle.plan["stage_1"]["checkpoint"], cycle.plan["candidate"])
    assert len(set(models)) == 3, "each stage has learned something"
    files, made = (read_verified(context.data / "models" / str(name)) for name in models[1:])
    teacher = context.another_engine()
    teacher.push(read_verified(context.data / "models" / scorer), "teacher")
    recipe = scored.recipe
    learner = Trainer(open_model(files), recipe.training, 0, max_tokens=recipe.agent.max_tokens, teacher=teacher.score)
    for step in range(int(cycle.plan["stage_2"]["step"])):
        record = ledger.step("t", step)
        assert record is not None
        learner.train_step(step, record.judged, record.groups)
    assert weights_digest(learner.model) == weights_digest(open_model(made))


def test_unverified_text_cannot_become_a_lesson() -> None:
    (recorded,) = read_traces(lines(conversation("42")), "f")
    failed = Verdict(outcome=Outcome.FAIL, score=0.0, reason="no", verifier="v", version="1", seconds=0.0)
    passed = failed.model_copy(update={"outcome": Outcome.PASS})
    own = {"task": recorded.task, "calls": recorded.calls, "last": recorded.last, "source": "f"}
    with pytest.raises(LearningError, match="not verified"):
        VerifiedTrace(**own, results=("42",), verdict=failed)
    with pytest.raises(LearningError, match="not verified"):
        VerifiedTrace(**own, results=(), verdict=passed)
    with pytest.raises(LearningError, match="not verified"):
        VerifiedTrace.model_validate_json(
            VerifiedTrace(**own, results=("42",), verdict=passed).model_dump_json().replace('"pass"', '"fail"')
        )


def tally_of(
    traces: Sequence[RecordedTrace],
    context: WorkContext,
    *,
    sessions: SessionPool | None = None,
    apart: Sequence[Task] = (),
    max_result_chars: int = 28,
) -> TraceTally:
    """What comes of these conversations in the context's own sessions, unless others are given."""
    return verified(
        traces,
        sessions or context.sessions,
        context.checker,
        context.policy,
        apart=SeparationIndex(apart),
        max_result_chars=max_result_chars,
        caller="t",
    )


def test_what_asks_a_sealed_question_is_left_out(context: WorkContext) -> None:
    traces = read_traces(lines(conversation("42"), conversation("42", question="what is 40+2?")), "f")
    tally = tally_of(traces, context, apart=[traces[0].task])
    assert [one.task.question for one in tally.kept] == ["what is 40+2?"]
    assert [match.kept for match in tally.asked] == [traces[0].task.id]
    assert (tally.within, tally.failed, tally.lost) == ((), 0, 0)


WRITES = "open('/work/a', 'w').write('42')\nprint(open('/work/a').read())"
"""Which takes a sandbox of its own."""


def test_more_conversations_than_places_take_turns(context: WorkContext, runtime: RuntimeSettings) -> None:
    asked = [conversation("42", question=f"what is 6*7? ({number})", code=WRITES) for number in range(3)]
    with Sessions(runtime.model_copy(update={"sandboxes": 1, "place_seconds": 60.0})) as sessions:
        tally = tally_of(read_traces(lines(*asked), "f"), context, sessions=sessions)
    assert ([one.results for one in tally.kept], tally.failed, tally.lost) == ([("42",)] * 3, 0, 0)


def test_a_conversation_that_gets_no_place_is_lost_alone(context: WorkContext, runtime: RuntimeSettings) -> None:
    narrow = runtime.model_copy(update={"sandboxes": 1, "place_seconds": 0.1})
    with Sessions(narrow) as sessions, sessions.open(tier=Tier.SANDBOX) as held:
        held.run("pass")
        tally = tally_of(
            read_traces(lines(conversation("42", code=WRITES), conversation("42")), "f"), context, sessions=sessions
        )
    assert ([one.calls for one in tally.kept], tally.failed, tally.lost) == ([("print(6*7)",)], 0, 1)


def said(*roles: str) -> bytes:
    messages = [{"role": role, "content": "\\boxed{42}"} for role in roles]
    return lines({"messages": messages, "spec": {"kind": "answer", "expected": "42"}})


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (b"{", "line 1"),
        (b"[]", "line 1 .* not a JSON object"),
        (b'{"messages": []}', "the last turn without a call is missing"),
        (said("user", "system", "assistant"), "line 1 .* only the first message may be a system message"),
        (said("system", "system", "user", "assistant"), "only the first message may be a system message"),
        (said("system", "assistant"), "line 1 .* no user message"),
        (said("assistant"), "no user message"),
        (lines(conversation("42") | {"spec": {"kind": "nonsense"}}), "kind"),
        (lines(conversation("42") | {"form": "loud"}), "form"),
        (lines(conversation("42", code="x")).replace(b'"name": "python"', b'"name": "rm"'), "unknown tool 'rm'"),
        (lines(conversation("42", question="what is \ud800?")), "lone surrogate"),
        (b"", "no conversation"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: bytes, word: str) -> None:
    with pytest.raises(TraceError, match=word):
        read_traces(line, "f")


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/v1",
        "http://10.0.0.1/v1",
        "file:///etc/passwd",
        "http://127.0.0.1.example/",
        "http://[::1",
        "http://localhost:port/v1",
        "",
    ],
)
def test_a_teacher_elsewhere_is_refused_before_its_stage_begins(url: str) -> None:
    with pytest.raises(EndpointError, match="not on this machine"):
        require_local(url)
    asked = stage("s", "sft", data="teacher", teacher=TeacherRecipe(base_url=url or "x", model="m"))
    assert "not on this machine" in refusal([asked])


def test_a_teacher_that_reads_other_tokens_is_refused(
    context: WorkContext, ledger: SqliteLedger, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for path in FIXTURE.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    (other / "tokenizer.json").write_text(json.dumps(tokenizer, indent=3))
    scorer = publish(other, context.data / "models")
    put_training(context, "t", stage("scored", "distil", scored_by=scorer))
    ledger.put_checkpoint(
        Checkpoint(
            manifest=scorer,
            parent=None,
            cycle="t",
            stage="imported",
            step=0,
            recipe="",
            metrics={},
            folder=f"models/{scorer}",
            created=AT,
        )
    )
    with pytest.raises(UnlikeTeacherError, match="different tokenizer"):
        train_night(context, "t")


def test_the_calls_of_a_task_with_files_find_them(context: WorkContext) -> None:
    draft, task = BUILT_IN.draft("tables", 1, 0), BUILT_IN.task("tables", 1, 0, Split.TRAIN)
    call = "print(open('orders.csv').read())"
    trace = RecordedTrace(task=task, calls=(call,), last=f"\\boxed{{{draft.answer}}}", source="f")
    tally = tally_of([trace], context, max_result_chars=100_000)
    assert [one.results for one in tally.kept] == [(task.files["orders.csv"].strip(),)]


def test_what_could_not_be_decided_is_lost_and_did_not_fail(context: WorkContext) -> None:
    items = [
        {"item": "words", "name": "place", "required": ["harbour"]},
        {"item": "soft", "name": "tone", "point": "It is kind."},
    ]
    line = {
        "messages": [
            {"role": "user", "content": "write a line about the harbour"},
            {"role": "assistant", "content": "The harbour was quiet when the last boat came home."},
        ],
        "spec": {"kind": "checklist", "items": items, "soft_needed": 0.5},
        "form": "whole",
    }
    tally = tally_of(read_traces(lines(line), "f"), context)
    assert (tally.kept, tally.failed, tally.lost) == ((), 0, 1), "no judge is here, and the list needs one"


def test_a_stage_whose_conversations_were_changed_or_are_too_long_says_so(
    context: WorkContext, ledger: SqliteLedger
) -> None:
    long = conversation("42", question="what is 6*7? " + "take your time, " * 30)
    content = lines(conversation("42"), long)
    digest = hashlib.sha256(content).hexdigest()
    (context.data / "traces").mkdir()
    kept = context.data / "traces" / digest
    kept.write_bytes(content.replace(b'"expected": "42"', b'"expected": "41"'))
    put_training(context, "t", stage("file", "sft", data="file", file=digest))
    with pytest.raises(ChangedTracesError, match="changed after"):
        train_night(context, "t")
    kept.write_bytes(content)
    train_night(context, "t")
    (said,) = [text for text in texts(ledger, "warning") if "tokens" in text]
    assert said == "stage-1: 1 of 2 conversations have more than 120 tokens, and are not learned from"
