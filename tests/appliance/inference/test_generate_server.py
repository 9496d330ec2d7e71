"""The wire contract of `/inference/v1/generate`: what goes in and comes out, and what is refused."""

from __future__ import annotations

import copy
import http.client
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import torch
from inference_models import VOCABULARY, engine_for, tiny
from scripted_engine import ScriptedEngine

from appliance.inference.engine import Engine, GenerationRequest, ModelError, OutOfMemoryError, Turn
from appliance.inference.http.generate_server import GenerateServer, read_key

KEY = "a key of some length"
SLOTS = 48
STOP = 5


class Client:
    def __init__(self, address: str, key: str = KEY) -> None:
        self.host, self.key = urlsplit(address).netloc, key

    def ask(self, path: str, body: object = None) -> tuple[int, Any]:
        given = body if isinstance(body, bytes) else json.dumps(body).encode()
        line = http.client.HTTPConnection(self.host, timeout=240)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        line.request("GET" if body is None else "POST", path, None if body is None else given, headers)
        answer = line.getresponse()
        content = answer.read()
        line.close()
        return answer.status, json.loads(content) if content else None

    def generate(self, ids: Sequence[int], **sampling: object) -> tuple[int, Any]:
        return self.ask("/inference/v1/generate", {"token_ids": list(ids), "sampling_params": sampling})


def served(engine: Engine, ends: tuple[int, ...] = (STOP,)) -> GenerateServer:
    return GenerateServer(engine, model="tiny", most_tokens=SLOTS, key=KEY, ends=ends)


class SilentEngine(ScriptedEngine):
    """Takes requests and never ends a turn."""

    def __init__(self) -> None:
        super().__init__({}, slots=SLOTS)

    def step(self) -> Sequence[Turn]:
        time.sleep(0.001)
        return []


def until(said: Any) -> None:
    while not said():
        time.sleep(0.01)


def test_what_comes_over_the_wire_is_what_the_engine_drew_with_its_log_probabilities_and_version() -> None:
    own = engine_for("qwen2", 4, SLOTS)
    expected = {}
    for seed in range(8):
        own.submit(GenerationRequest(seed, (1, 2, 3), STOP, 3 + 20, 1.0, seed, other_stops=(6,)))
    while own.unfinished:
        for turn in own.step():
            expected[turn.request] = turn
            own.finish(turn.request)
    with served(engine_for("qwen2", 4, SLOTS)) as server, ThreadPoolExecutor(8) as pool:
        client = Client(server.address)
        ask = lambda seed: client.generate((1, 2, 3), seed=seed, max_tokens=20, stop_token_ids=[STOP, 6], logprobs=1)  # noqa: E731
        for seed, (status, said) in enumerate(pool.map(ask, range(8))):
            turn, choice = expected[seed], said["choices"][0]
            assert (status, tuple(choice["token_ids"]), choice["finish_reason"]) == (200, turn.ids, turn.ended)
            content = choice["logprobs"]["content"]
            assert [one["token"] for one in content] == [f"token_id:{token}" for token in turn.ids]
            assert [one["logprob"] for one in content] == pytest.approx(turn.logprobs, abs=1e-5)
            version = {"version": "digest of qwen2", "start": 0, "end": len(turn.ids)}
            assert choice["weight_versions"] == [version]
            assert choice["stop_reason"] == (turn.ids[-1] if turn.ended == "stop" else None)


def test_new_weights_wait_for_what_is_under_way_and_then_answer() -> None:
    with served(engine_for("qwen2", 2, SLOTS)) as server, ThreadPoolExecutor(6) as pool:
        client = Client(server.address)
        early = [pool.submit(client.generate, (1, seed)) for seed in range(4)]
        until(lambda: any(one.done() for one in early))
        assert server.push(tiny("llama"), "next").version == "next"
        late = client.generate((1, 2))
        spans = [one.result()[1]["choices"][0]["weight_versions"] for one in early] + [
            late[1]["choices"][0]["weight_versions"]
        ]
    assert [len(one) for one in spans] == [1] * 5
    assert spans[-1][0]["version"] == "next"
    assert {one[0]["version"] for one in spans[:4]} <= {"digest of qwen2", "next"}


def test_the_weights_before_are_named_until_a_push_has_ended() -> None:
    named = []

    class GivesUpFirst(SilentEngine):
        def push(self, weights: Any, version: str) -> Any:
            self.version = ""
            named.append(server.version)
            if version == "too large":
                raise OutOfMemoryError("no room", hint="lower it")
            return super().push(weights, version)

    with served(GivesUpFirst()) as server:
        server.push(tiny("qwen2"), "next")
        with pytest.raises(OutOfMemoryError):
            server.push(tiny("qwen2"), "too large")
        assert (named, server.version) == (["scripted", "next"], "")


@pytest.fixture
def scripted() -> Iterator[tuple[ScriptedEngine, Client]]:
    engine = ScriptedEngine(lambda request, known: (7, request.stop), slots=SLOTS, vocabulary=VOCABULARY)
    with served(engine) as server:
        yield engine, Client(server.address)


IDS = {"token_ids": [1, 2]}
WRONG: list[tuple[object, str]] = [
    (b"", "body"),
    (b"\xff\xfe{", "body"),
    (b"[" * 100_000, "body"),
    ([], "body"),
    ({}, "token_ids"),
    ({"token_ids": []}, "token_ids"),
    ({"token_ids": ["1"]}, "token_ids.0"),
    ({"token_ids": [1.5]}, "token_ids.0"),
    ({"token_ids": [True]}, "token_ids.0"),
    ({"token_ids": [-1]}, "token_ids.0"),
    ({"token_ids": [2**40]}, "token_ids.0"),
    ({"token_ids": [VOCABULARY]}, "vocabulary"),
    ({"token_ids": [1] * SLOTS}, "maximum context length"),
    ({**IDS, "sampling_params": {"max_tokens": SLOTS}}, "maximum context length"),
    ({**IDS, "sampling_params": {"max_tokens": 0}}, "max_tokens"),
    ({**IDS, "sampling_params": {"temperature": -1}}, "temperature"),
    (b'{"token_ids": [1], "sampling_params": {"temperature": NaN}}', "NaN is not JSON"),
    (b'{"token_ids": [1], "sampling_params": {"temperature": 1e999}}', "a number out of range"),
    ({**IDS, "sampling_params": {"top_p": 0.9}}, "truncated or reshaped"),
    ({**IDS, "sampling_params": {"top_k": 20}}, "truncated or reshaped"),
    ({**IDS, "sampling_params": {"min_p": 0.1}}, "truncated or reshaped"),
    ({**IDS, "sampling_params": {"repetition_penalty": 1.1}}, "truncated or reshaped"),
    ({**IDS, "sampling_params": {"stop": ["\n"]}}, "truncated or reshaped"),
    ({**IDS, "sampling_params": {"n": 2}}, "sampling_params.n"),
    ({**IDS, "sampling_params": {"stop_token_ids": [1] * 65}}, "stop_token_ids"),
    ({**IDS, "sampling_params": {"logits_processors": "x"}}, "logits_processors"),
    ({**IDS, "request_id": "../x y"}, "request_id"),
    ({**IDS, "cache_salt": "x" * 257}, "cache_salt"),
    ({**IDS, "stream": True}, "stream"),
    ({**IDS, "features": {}}, "features"),
]


@pytest.mark.parametrize(("body", "said"), WRONG)
def test_what_is_no_request_is_refused_with_what_is_wrong_and_the_engine_hears_nothing(
    scripted: tuple[ScriptedEngine, Client], body: object, said: str
) -> None:
    engine, client = scripted
    status, answer = client.ask("/inference/v1/generate", body)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert said in answer["error"]["message"]
    assert len(answer["error"]["message"]) < 500
    assert engine.unfinished == engine.steps == 0


WRITTEN = (7, 6, 8, STOP, 9)
ENDS: list[tuple[dict[str, object], int, str, int | None]] = [
    ({}, 4, "stop", None),
    ({"stop_token_ids": [6]}, 2, "stop", 6),
    ({"stop_token_ids": [11]}, 4, "stop", None),
    ({"ignore_eos": True}, 5, "length", None),
    ({"ignore_eos": True, "stop_token_ids": [STOP]}, 4, "stop", STOP),
]


@pytest.mark.parametrize(("sampling", "count", "ended", "reason"), ENDS)
def test_a_turn_ends_at_the_models_own_end_unless_that_is_to_be_ignored(
    sampling: dict[str, object], count: int, ended: str, reason: int | None
) -> None:
    def until_a_stop(request: GenerationRequest, known: tuple[int, ...]) -> tuple[int, ...]:
        return WRITTEN[: min((WRITTEN.index(one) for one in request.stops if one in WRITTEN), default=4) + 1]

    with served(ScriptedEngine(until_a_stop, slots=SLOTS)) as server:
        choice = Client(server.address).generate((1, 2), max_tokens=5, **sampling)[1]["choices"][0]
    assert (len(choice["token_ids"]), choice["finish_reason"], choice["stop_reason"]) == (count, ended, reason)


def test_a_turn_that_nothing_known_would_end_is_refused() -> None:
    engine = ScriptedEngine(lambda request, known: (7, request.stop), slots=SLOTS)
    with served(engine, ends=()) as server:
        client = Client(server.address)
        status, said = client.ask("/inference/v1/generate", IDS)
        assert (status, engine.steps) == (400, 0)
        assert "set stop_token_ids, or ignore_eos" in said["error"]["message"]
        for sampling in ({"ignore_eos": True}, {"stop_token_ids": [6]}):
            assert client.generate((1, 2), **sampling)[0] == 200


def test_who_does_not_know_the_key_is_told_nothing_but_that_there_is_an_engine(
    scripted: tuple[ScriptedEngine, Client],
) -> None:
    engine, client = scripted
    known = client.ask("/v1/models")[1]["data"]
    assert [(one["id"], one["max_model_len"], one["weight_version"]) for one in known] == [("tiny", SLOTS, "scripted")]
    stranger = Client(f"http://{client.host}", key="another key of some length")
    for path, body in (("/v1/models", None), ("/inference/v1/generate", IDS), ("/inference/v1/abort_requests", {})):
        assert stranger.ask(path, body)[0] == 401
    assert stranger.ask("/health") == (200, None)
    assert client.ask("/inference/v1/generate", {**IDS, "model": "another"})[0] == 404
    assert client.ask("/collective_rpc", {})[0] == 404
    assert client.ask("/inference/v1/generate", b"[" + b" " * (17 << 20))[0] == 413
    assert engine.steps == 0


def test_an_aborted_request_and_one_whose_asker_hung_up_leave_the_engine() -> None:
    engine = SilentEngine()
    with served(engine) as server, ThreadPoolExecutor(2) as pool:
        client = Client(server.address)
        asked = pool.submit(client.ask, "/inference/v1/generate", {**IDS, "request_id": "mine"})
        until(lambda: engine.unfinished == 1)
        assert client.ask("/inference/v1/generate", {**IDS, "request_id": "mine"})[0] == 409
        assert client.ask("/inference/v1/abort_requests", {"request_ids": ["mine", "nobody's"]}) == (200, {})
        status, said = asked.result()
        assert (status, said["choices"][0]["finish_reason"], said["choices"][0]["token_ids"]) == (200, "abort", [])
        until(lambda: engine.unfinished == 0)
        line = http.client.HTTPConnection(client.host)
        line.request("POST", "/inference/v1/generate", json.dumps(IDS), {"Authorization": f"Bearer {KEY}"})
        until(lambda: engine.unfinished == 1)
        line.close()
        until(lambda: engine.unfinished == 0)


def test_a_client_that_never_ends_its_body_is_left_at_the_end_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    head = (
        f"POST /inference/v1/generate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Length: 9\r\n\r\n"
    )
    with served(SilentEngine()) as server:
        address = urlsplit(server.address)
        line = socket.create_connection((address.hostname, address.port))
        line.sendall(head.encode())
        assert Client(server.address).ask("/health")[0] == 200
    line.close()
    assert [record.message for record in caplog.records if record.exc_info] == []


def test_an_engine_that_fails_answers_everybody_with_an_error_and_is_not_well() -> None:
    class Broken(SilentEngine):
        def step(self) -> Sequence[Turn]:
            raise ModelError("the weights give no finite probabilities", hint="go back")

    engine = Broken()
    with served(engine) as server, ThreadPoolExecutor(3) as pool:
        client = Client(server.address)
        for status, said in pool.map(lambda _: client.ask("/inference/v1/generate", IDS), range(3)):
            assert status == 503
            assert "no finite probabilities" in said["error"]["message"]
        assert client.ask("/health")[0] == 503


def test_a_key_is_made_once_and_refused_where_others_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "made" / "engine.key"
    assert read_key(path) == read_key(path)
    assert (len(read_key(path)) >= 32, path.stat().st_mode & 0o777) == (True, 0o600)
    path.chmod(0o640)
    with pytest.raises(ModelError, match="readable by others"):
        read_key(path)
    for key in ("short", "not printable\n at all", "schlüssel genug"):
        with pytest.raises(ModelError, match="invalid key"):
            GenerateServer(SilentEngine(), model="x", most_tokens=8, key=key)


def test_the_command_serves_a_folder_and_what_it_holds_later_until_it_is_told_to_stop(tmp_path: Path) -> None:
    tiny("qwen3").save_pretrained(tmp_path / "model")
    ends = json.dumps({"eos_token_id": [*range(VOCABULARY)]}).encode()
    (tmp_path / "model" / "generation_config.json").write_bytes(ends)
    command = [sys.executable, "-c", ON_GPU + COMMAND]
    given = ["engine", "serve", str(tmp_path / "model"), "--name", "tiny", "--data", str(tmp_path), "--json"]
    environment = {**os.environ, "ASSAY_MODEL__DEVICE": "cpu"}
    ran = subprocess.Popen(
        [*command, *given], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        said = next_document(ran)
        client = Client(said["base_url"], Path(said["key"]).read_text().strip())
        status, answer = client.ask("/inference/v1/generate", {**IDS, "model": "tiny"})
        choice = answer["choices"][0]
        assert (status, choice["weight_versions"][0]["version"]) == (200, said["version"])
        assert (len(choice["token_ids"]), choice["finish_reason"]) == (1, "stop"), "each token is an end by its files"
        (tmp_path / "model" / "config.json").rename(tmp_path / "config.json")
        ran.send_signal(signal.SIGUSR1)
        assert ran.stderr is not None
        assert "no new weights" in ran.stderr.readline()
        assert client.ask("/v1/models")[1]["data"][0]["weight_version"] == said["version"]
        diverged = copy.deepcopy(tiny("qwen3"))
        with torch.no_grad():
            diverged.model.norm.weight.fill_(math.nan)
        diverged.save_pretrained(tmp_path / "model")
        (tmp_path / "model" / "generation_config.json").write_bytes(ends)
        ran.send_signal(signal.SIGUSR1)
        assert "no finite probabilities" in ran.stderr.readline()
        status, answer = client.ask("/inference/v1/generate", {**IDS, "model": "tiny"})
        assert (status, answer["choices"][0]["weight_versions"][0]["version"]) == (200, said["version"])
        tiny("qwen3", head=16).save_pretrained(tmp_path / "model")
        (tmp_path / "model" / "generation_config.json").write_bytes(ends)
        ran.send_signal(signal.SIGUSR1)
        new = next_document(ran)
        assert new["version"] != said["version"]
        assert client.ask("/v1/models")[1]["data"][0]["weight_version"] == new["version"]
        status, answer = client.ask("/inference/v1/generate", {**IDS, "model": "tiny"})
        assert (status, answer["choices"][0]["weight_versions"][0]["version"]) == (200, new["version"])
    finally:
        ran.send_signal(signal.SIGTERM)
        assert ran.wait(240) == 0


def next_document(ran: subprocess.Popen[str]) -> Any:
    assert ran.stdout is not None
    lines = []
    for line in ran.stdout:
        lines.append(line)
        if line.startswith("}"):
            break
    return json.loads("".join(lines))


ON_GPU = "from appliance.inference.device import Placement; Placement.gpu = True; "
"""Has the engine give its weights up before it takes others."""
COMMAND = "import sys; from appliance.cli.entry import main; sys.argv[0] = 'assay'; main()"
