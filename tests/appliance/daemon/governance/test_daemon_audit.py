"""The audit log from beside the daemon: verified while it runs, taken away, damaged, and begun anew."""

from __future__ import annotations

import pytest
from people import admit

from appliance.audit.log import AuditBroken, log_file
from appliance.cli.audit import renew
from appliance.cli.audit.read import entries_of, verified, write_export
from appliance.cli.audit.renew import begin_anew
from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.errors import AssayError
from appliance.ledger.ledger import LedgerError
from appliance.settings.data_schema import START_FRESH
from appliance.settings.policy_files import in_force_file
from policies.errors import PolicyError


@pytest.fixture
def logged(data):
    """A data folder with a log, whose daemon has ended."""
    with Core(Settings(data=data)) as core:
        admit(core, "ada", "bob")
    return data


def test_it_is_verified_while_the_daemon_writes_it(data) -> None:
    with Core(Settings(data=data)) as core:
        admit(core, "ada")
        checked = verified(data, None, None, [])
        assert (checked.found.holds, checked.notes) == (True, [])
        assert str(checked.found.head) == str(core.ledger.audit.head)
        with pytest.raises(LedgerError, match="works on"):
            begin_anew(data, "while it runs")


def test_an_export_is_checked_elsewhere_and_nothing_is_overwritten(logged, tmp_path) -> None:
    file = tmp_path / "export.jsonl"
    head = write_export(logged, file)
    public = logged / "keys" / "daemon.pub"
    assert verified(tmp_path, file, public, []).found.head == head
    assert "comes from the log itself" in verified(tmp_path, file, None, []).notes[0]
    other = logged / "keys" / "trainer.pub"
    assert verified(tmp_path, file, other, []).found.bad == 0
    with pytest.raises(AssayError, match="exists"):
        write_export(logged, file)


@pytest.mark.parametrize("cut", [1, 2, 4])
def test_a_cut_end_is_seen_by_the_ledger_or_by_a_head_that_was_noted(logged, cut) -> None:
    path = log_file(logged)
    lines = path.read_bytes().splitlines(keepends=True)
    head = str(verified(logged, None, None, []).found.head)
    path.write_bytes(b"".join(lines[:-cut]))
    assert verified(logged, None, None, []).found.bad == len(lines) - cut
    assert verified(logged, path, None, [head]).found.bad == len(lines) - cut
    blind = verified(logged, path, None, [])
    assert (blind.found.holds, "missing entries at its end" in " ".join(blind.notes)) == (True, True)


def test_a_log_that_does_not_hold_is_neither_exported_nor_gone_on_with_until_it_is_begun_anew(logged, tmp_path) -> None:
    path = log_file(logged)
    harmed = path.read_bytes().replace(b'"person":"bob"', b'"person":"eve"')
    path.write_bytes(harmed)
    with pytest.raises(AssayError, match="the log is invalid and was not exported"):
        write_export(logged, tmp_path / "export.jsonl")
    with pytest.raises(AuditBroken), Core(Settings(data=logged)):
        pass
    (logged / "policy.toml").write_text("version = 4\n")
    old_log = begin_anew(logged, "somebody changed it")
    assert old_log is not None
    assert (logged / "audit" / old_log.name).read_bytes() == harmed
    with Core(Settings(data=logged)) as core:
        assert core.trust.register.persons == ()
        admit(core, "ada")
    first = entries_of(logged, 1000)[-1]
    assert (first.kind, first.what["renewed"]) == ("log.begin", "somebody changed it")
    assert verified(logged, None, None, []).found.holds


@pytest.mark.parametrize("known", ["", "x", "1:abc"])
def test_what_is_no_head_or_no_log_is_said(logged, tmp_path, known) -> None:
    with pytest.raises(AssayError, match="NUMBER:SHA256"):
        verified(logged, None, None, [known])
    with pytest.raises(AssayError):
        verified(tmp_path, tmp_path / "nothing", None, [])


def test_a_policy_in_force_of_another_version_is_not_carried_over_even_when_the_log_is_begun_anew(logged) -> None:
    old = "version = 3\n"
    with Core(Settings(data=logged)) as core:
        core.trust.log("policy.first_use", content=old)
        in_force_file(logged).write_text(old)
    for _ in range(2):
        with pytest.raises(PolicyError, match="has version 3, which is not carried over") as met:
            Core(Settings(data=logged)).__enter__()
        assert met.value.hint == START_FRESH
        begin_anew(logged, "upgrade")


def test_a_renewal_that_was_interrupted_is_not_gone_on_with_and_is_run_again(logged, monkeypatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(renew, "adopt", killed)
        with pytest.raises(KeyboardInterrupt):
            begin_anew(logged, "interrupted")
    with pytest.raises(LedgerError, match="does not list the ledger's records") as met, Core(Settings(data=logged)):
        pass
    assert "`assay audit renew` was interrupted" in met.value.hint
    assert "does not list the ledger's records" in verified(logged, None, None, []).differs[0]
    begin_anew(logged, "again")
    with Core(Settings(data=logged)) as core:
        assert core.ledger.mismatches(None) == []
