"""A command fails by its own time and doings; a sandbox that does not start, or starves, says nothing about files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.errors import MACHINE_ERRORS, GuestLostError, SandboxError, StarvedError
from runtime.sandbox import CallStatus, ExecResult
from runtime.sessions import Sessions
from runtime.sessions.own_sandbox import OwnSandbox
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.contract.verdict import Ground, Outcome
from verifiers.files.spec import CommandCondition, FilesSpec
from verifiers.files.verifier import FilesVerifier

SPEC = FilesSpec(declared=("a.sh",), commands=(CommandCondition(command=("sh", "a.sh"), stdout="1"),), seconds=1.0)


@pytest.fixture(scope="module")
def verifier(full_roots: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilesVerifier]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=full_roots, ready=0)
    with Sessions(RuntimeSettings(own=own, shared_workers=1)) as pool:
        yield FilesVerifier(pool)


def judged(verifier: FilesVerifier, script: str) -> Any:
    return verifier.verify(SPEC, json.dumps({"a.sh": {"text": script, "mode": "644"}}))


def test_own_time_is_a_verdict(verifier: FilesVerifier) -> None:
    assert judged(verifier, "echo 1\n").passed
    for script, why in (("while :; do :; done\n", "computed for more than 1 s"), ("sleep 99\n", "took more than 1 s")):
        verdict = judged(verifier, script)
        assert (verdict.outcome, verdict.ground) == (Outcome.FAIL, Ground.TIMEOUT)
        assert why in verdict.reason


@pytest.mark.parametrize("error", [*MACHINE_ERRORS, GuestLostError])
def test_only_a_sandbox_that_was_lost_while_a_command_ran_is_its_doing(
    verifier: FilesVerifier, monkeypatch: pytest.MonkeyPatch, error: type[SandboxError]
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error("as chosen")

    monkeypatch.setattr(OwnSandbox, "exec", fails)
    if error is GuestLostError:
        verdict = judged(verifier, "echo 1\n")
        assert (verdict.ground, "crashed its sandbox twice" in verdict.reason) == (Ground.REFUTED, True)
    else:
        with pytest.raises(error):
            judged(verifier, "echo 1\n")


@pytest.mark.parametrize("status", [CallStatus.TIMEOUT, CallStatus.EXPIRED])
def test_wall_clock_is_no_verdict(verifier: FilesVerifier, monkeypatch: pytest.MonkeyPatch, status: CallStatus) -> None:
    def starved(*_: object, **__: object) -> ExecResult:
        return ExecResult(
            status=status, exit_code=None, stdout=b"", stderr=b"", seconds=40.0, computed=0.1, waited=39.5
        )

    monkeypatch.setattr(OwnSandbox, "exec", starved)
    with pytest.raises(StarvedError):
        judged(verifier, "echo 1\n")
