"""One daemon from a person's approval to a task of the owner's: the model that it promoted answers at its own gateway,
what a token with consent asks is recorded, and a verdict that passed makes it a task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openai
import pytest
import test_daemon_governance as built
from daemon_kit import until
from test_daemon_gateway import SEEDLING, answers, free_port

from appliance.config.configuration import Settings
from appliance.curriculum.own_tasksets import read_own
from appliance.daemon.coordination.core import Core
from appliance.gateway.sessions import KeptSessions
from appliance.inference.folder import read_model
from appliance.learning.folders import write_by_digest
from appliance.system.clock import utc_now

CHECK = {"kind": "answer", "expected": "6", "notation": "digits"}
QUESTION = "gcd of 12 and 18?"
PYTHON = {
    "type": "function",
    "function": {
        "name": "python",
        "description": "Runs Python.",
        "parameters": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
    },
}
TRIES = 60
"""Of a small model, which is asked what it was raised on."""


@pytest.fixture
def models(data: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The fixture model as champion and as candidate, evaluated a moment ago: two digests, the same weights."""
    monkeypatch.setattr(built, "AT", utc_now())
    files = read_model(SEEDLING)

    def put_model(folder: Path, ledger, content: bytes) -> str:
        digest = write_by_digest(folder / "models", {**files, "note.txt": content})
        ledger.put_checkpoint(built.checkpoint_record(digest, created=utc_now()))
        return digest

    monkeypatch.setattr(built, "put_model", put_model)
    with Core(Settings(data=data)) as core:
        champion = put_model(data, core.ledger, b"champion")
        core.ledger.set_aliases({"champion": champion}, "first", utc_now())
        return champion, built.put_decided(core, champion, b"candidate")


@pytest.mark.timeout(900)
def test_the_promoted_model_answers_and_a_verified_session_becomes_a_task(start, assay, data, models, tmp_path) -> None:
    champion, candidate = models
    port = free_port()
    gateway = {"ASSAY_GATEWAY__ENABLED": "true", "ASSAY_GATEWAY__PORT": str(port), "ASSAY_THREADS": "1"}
    gateway["ASSAY_SCHEDULE__ENABLED"] = "false"
    secret = tmp_path / "passphrase"
    secret.write_text("correct horse battery\n")
    signs = ("--passphrase-file", str(secret))
    daemon = start(**gateway)
    daemon.ready()
    made = assay("gateway", "token", "new", "agent", "--consent", "--json")
    token = json.loads(made.stdout)["secret"]
    until(lambda: answers(port), 600)
    assert f"at http://127.0.0.1:{port}/v1, tokens in use: 1" in assay("status").stdout

    def ask(client: openai.OpenAI, seed: int) -> dict[str, Any]:
        """What came of a whole conversation, in which the agent is the calculator that the model knows."""
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        while True:
            said = client.chat.completions.create(
                model="champion",
                messages=messages,
                max_tokens=120,
                seed=seed,
                tools=[PYTHON],
                extra_body={"assay": {"check": CHECK}},
            )
            turn = said.choices[0].message
            if not turn.tool_calls or len(messages) > 4:
                return said.assay
            messages += [turn, {"role": "tool", "tool_call_id": turn.tool_calls[0].id, "content": "6\n"}]

    # While another model comes into service, it is asked to come again (503), and does: the client's own way.
    with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=token, max_retries=5) as client:
        assert ask(client, 0)["weights"] == champion
        assert assay("key", "new", "--as", "ada", *signs).returncode == 0
        decision = assay("model", "show", "candidate").stdout.split()[-1]
        approved = assay("model", "approve", "candidate", "--decision", decision, *signs, "--json")
        assert json.loads(approved.stdout)["aliases"]["champion"] == candidate, approved.stderr
        until(lambda: ask(client, 0)["weights"] == candidate)
        said = (ask(client, seed) for seed in range(TRIES))
        passed = next(one["session"] for one in said if one["verdict"] and one["verdict"]["outcome"] == "pass")
    kept = KeptSessions(data).get(passed)
    assert (kept.token, kept.version, kept.verdict.outcome.value) == ("agent", candidate, "pass")
    assert kept.nodes[-1].ids
    collected = assay("curriculum", "collect", "--json")
    assert json.loads(collected.stdout)["taken"] == {f"session {passed}": "own/sessions"}, collected.stderr
    (row,) = read_own(data, "own/sessions").content.rows
    assert row.question == QUESTION
    assert "Traceback" not in daemon.end()
