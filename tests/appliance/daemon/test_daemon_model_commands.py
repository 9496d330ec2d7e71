"""A person's word at the command line: what is shown is what is approved, and one command takes it back."""

from __future__ import annotations

import json

import pytest
import test_daemon_governance as built

from appliance.config import Settings
from appliance.daemon.core import Core, utc_now


@pytest.fixture
def models(data, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Champion and candidate on record, evaluated a moment ago."""
    monkeypatch.setattr(built, "AT", utc_now())
    with Core(Settings(data=data)) as core:
        champion = built.put_model(data, core.ledger, b"champion")
        core.ledger.set_aliases({"champion": champion}, "first", utc_now())
        return champion, built.put_decided(core, champion, b"candidate")


def test_a_candidate_is_looked_at_approved_in_service_and_taken_back(start, assay, models) -> None:
    champion, candidate = models
    start().ready().close()
    shown = assay("model", "show", "candidate")
    assert shown.returncode == 0, shown.stderr
    assert "improvement" in shown.stdout
    assert f"{candidate[:12]}, waits for a word" in assay("status").stdout
    decision = json.loads(assay("model", "show", candidate[:6], "--json").stdout)[0]
    assert decision["outcome"] == "hold"
    digest = shown.stdout.split()[-1]

    stale = assay("model", "approve", "candidate", "--decision", "0" * 64)
    assert (stale.returncode, "newer decision" in stale.stderr) == (4, True)
    approved = assay("model", "approve", candidate[:8], "--decision", digest)
    assert (approved.returncode, candidate[:12] in approved.stdout) == (0, True), approved.stderr
    assert json.loads(assay("status", "--json").stdout)["aliases"]["champion"] == candidate
    assert candidate[:12] in assay("status").stdout
    again = assay("model", "approve", candidate[:8])
    assert (again.returncode, "in service already" in again.stderr) == (4, True)

    back = assay("model", "rollback", "--reason", "it felt wrong", "--json")
    assert json.loads(back.stdout)["champion"] == champion
    once_more = assay("model", "rollback")
    assert (once_more.returncode, "no earlier champion" in once_more.stderr) == (4, True)


def test_a_model_without_a_decision_is_shown_as_such(start, assay, models) -> None:
    champion, _ = models
    start().ready().close()
    assert "none yet" in assay("model", "show", champion[:8]).stdout
    assert json.loads(assay("model", "show", "champion", "--json").stdout) == []
    unknown = assay("model", "show", "abcdef123456")
    assert (unknown.returncode, "assay model ls" in unknown.stderr) == (2, True)
