"""A person's word at the command line: what is shown is what is signed, and one command takes it back."""

from __future__ import annotations

import getpass
import json
import re
import sys
from typing import Any

import pytest
import test_daemon_governance as built
import typer

from appliance.cli.main import app
from appliance.cli.shell.person import SigningOptions
from appliance.client import SPEC, ApiError, SubmitJob
from appliance.client.messages import SignedStatement
from appliance.client.person_keys import WrongPassphraseError, make_key
from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.system.clock import utc_now
from policies.errors import Refusal

PASSPHRASE = "correct horse battery"


@pytest.fixture
def models(data, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Champion and candidate on record, evaluated a moment ago."""
    monkeypatch.setattr(built, "AT", utc_now())
    with Core(Settings(data=data)) as core:
        champion = built.put_model(data, core.ledger, b"champion")
        core.ledger.set_aliases({"champion": champion}, "first", utc_now())
        return champion, built.put_decided(core, champion, b"candidate")


@pytest.fixture
def person(assay, tmp_path):
    """Runs a command that signs; `person("new", "ada")` makes a key."""
    secret = tmp_path / "passphrase"
    secret.write_text(f"{PASSPHRASE}\n")
    return lambda *arguments, **environ: assay(*arguments, "--passphrase-file", str(secret), **environ)


def test_a_candidate_is_looked_at_approved_in_service_and_taken_back(start, assay, person, models) -> None:
    champion, candidate = models
    start().ready()
    shown = assay("model", "show", "candidate")
    assert shown.returncode == 0, shown.stderr
    assert "improvement" in shown.stdout
    assert "now          waits for you" in shown.stdout
    assert "is recorded, and valid for this evaluation alone" in shown.stdout
    assert f"{candidate[:12]}, waits for you" in assay("status").stdout
    decision = json.loads(assay("model", "show", candidate[:6], "--json").stdout)[0]
    assert decision["outcome"] == "hold"
    digest = shown.stdout.split()[-1]

    keyless = person("model", "approve", "candidate")
    assert (keyless.returncode, "assay key new" in keyless.stderr, keyless.stdout) == (2, True, "")
    made = person("key", "new", "--as", "ada")
    assert (made.returncode, "trusted on first use" in made.stdout) == (0, True), made.stderr
    other = person("model", "approve", "candidate", "--decision", "0" * 64)
    assert (other.returncode, "is not a decision about" in other.stderr) == (4, True)
    unclear = person("model", "approve", "candidate", "--decision", "abc")
    assert (unclear.returncode, "invalid decision digest 'abc'" in unclear.stderr) == (2, True)
    unconfirmed = person("model", "approve", "candidate")
    assert (unconfirmed.returncode, digest in unconfirmed.stdout, candidate in unconfirmed.stdout) == (2, True, True)
    approved = person("model", "approve", candidate[:8], "--decision", digest)
    assert (approved.returncode, candidate[:12] in approved.stdout) == (0, True), approved.stderr
    assert json.loads(assay("status", "--json").stdout)["aliases"]["champion"] == candidate
    assert candidate[:12] in assay("status").stdout
    newest = json.loads(assay("model", "show", candidate, "--json").stdout)[0]
    assert newest["outcome"] == "promote"
    stale = person("model", "approve", candidate, "--decision", digest)
    assert (stale.returncode, "a newer decision about" in stale.stderr) == (4, True)
    again = person(
        "model", "approve", candidate[:8], "--decision", assay("model", "show", candidate).stdout.split()[-1]
    )
    assert (again.returncode, "already in service" in again.stderr) == (4, True)

    unsure = assay("model", "rollback", "--reason", "it felt wrong")
    assert unsure.returncode == 2
    assert "is then in quarantine: only a new evaluation" in unsure.stdout
    assert f"--confirm {candidate[:6]}" in unsure.stderr
    assert json.loads(assay("status", "--json").stdout)["aliases"]["champion"] == candidate, "nothing was done"
    back = assay("model", "rollback", "--reason", "it felt wrong", "--json", "--confirm", candidate[:8])
    assert json.loads(back.stdout)["champion"] == champion
    once_more = assay("model", "rollback")
    assert (once_more.returncode, "no earlier champion" in once_more.stderr) == (4, True)
    kinds = [entry["kind"] for entry in json.loads(assay("audit", "ls", "--json").stdout)]
    assert kinds[:5] == ["aliases", "decision", "aliases", "decision", "word"]


def test_a_second_person_is_admitted_by_the_first_and_revoked_by_anybody(start, assay, person, models, data) -> None:
    api = start().ready()
    person("key", "new", "--as", "ada")
    waiting = person("key", "new", "--as", "bob")
    assert (waiting.returncode, "not known yet" in waiting.stdout) == (0, True), waiting.stderr
    file = next((data.parent / "config").rglob("bob.admission"))
    with pytest.raises(ApiError) as met:
        api.change_key(SignedStatement.of(file.read_bytes()))
    assert met.value.refusal is Refusal.SIGNERS
    several = person("key", "admit", str(file))
    assert (several.returncode, "--as NAME" in several.stderr) == (2, True)
    unconfirmed = person("key", "admit", str(file), "--as", "ada", "--confirm", "yes")
    assert (unconfirmed.returncode, "nothing was done" in unconfirmed.stderr) == (2, True)
    print_ = next(line.split()[-1] for line in unconfirmed.stdout.splitlines() if line.startswith("fingerprint"))
    admitted = person("key", "admit", str(file), "--as", "ada", "--confirm", print_.removeprefix("SHA256:"))
    assert (admitted.returncode, "admitted by ada" in admitted.stdout) == (0, True), admitted.stderr
    assert not file.exists()
    listed = json.loads(assay("key", "ls", "--json").stdout)
    assert [(key["person"], key["admitted_by"]) for key in listed["keys"]] == [("ada", []), ("bob", ["ada"])]
    assert sorted(listed["machines"].values()) == ["daemon", "trainer"]
    assert "trusted on first use" in assay("key", "ls").stdout
    assert print_ in assay("key", "show", "bob").stdout
    gone = person(
        "key", "revoke", "bob", "--as", "ada", "--reason", "left", "--confirm", print_.removeprefix("SHA256:")
    )
    assert (gone.returncode, "is revoked" in gone.stdout) == (0, True), gone.stderr
    late = person("model", "approve", "candidate", "--as", "bob", "--decision", decision_of(assay))
    assert (late.returncode, "revoked key" in late.stderr) == (4, True)


def decision_of(assay) -> str:
    return assay("model", "show", "candidate").stdout.split()[-1]


def test_an_edited_policy_takes_effect_with_a_signature(start, assay, person, data) -> None:
    start().ready()
    person("key", "new", "--as", "ada")
    before = json.loads(assay("status", "--json").stdout)["policy"]
    packaged = (data / "policy" / "in-force.toml").read_text()
    (data / "policy.toml").write_text(packaged.replace("min_gain = 1.0", "min_gain = 2.0"))
    assert json.loads(assay("status", "--json").stdout)["policy"] == before
    wrong = person("policy", "sign", "--confirm", "whatever")
    assert (wrong.returncode, "+min_gain = 2.0" in wrong.stdout) == (2, True), wrong.stderr
    digest = next(line.split()[-1] for line in wrong.stdout.splitlines() if line.startswith("new"))
    signed = person("policy", "sign", "--confirm", digest)
    assert (signed.returncode, "is in force" in signed.stdout) == (0, True), signed.stderr
    assert json.loads(assay("status", "--json").stdout)["policy"] == digest
    (data / "policy.toml").write_text("version = 1\n")
    broken = person("policy", "sign", "--confirm", digest)
    assert (broken.returncode, "missing" in broken.stderr) == (2, True)


def test_a_log_is_verified_without_the_daemon_and_its_first_bad_entry_named(assay, models, data) -> None:
    sound = assay("audit", "verify", "--json")
    assert (sound.returncode, json.loads(sound.stdout)["holds"]) == (0, True), sound.stderr
    path = data / "audit" / "log.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    bad = assay("audit", "verify")
    assert (bad.returncode, "first bad entry: 2:" in bad.stdout) == (1, True), bad.stderr


def test_a_model_without_a_decision_is_shown_as_such(start, assay, models) -> None:
    champion, _ = models
    start().ready()
    assert "none yet" in assay("model", "show", champion[:8]).stdout
    assert json.loads(assay("model", "show", "champion", "--json").stdout) == []
    unknown = assay("model", "show", "abcdef123456")
    assert (unknown.returncode, "assay model ls" in unknown.stderr) == (2, True)


def signing_commands() -> dict[tuple[str, ...], set[str]]:
    """Every command that signs, with its options."""
    found: dict[tuple[str, ...], set[str]] = {}

    def look(command: Any, path: tuple[str, ...]) -> None:
        if hasattr(command, "list_commands"):
            for name in command.list_commands(None):
                look(command.get_command(None, name), (*path, name))
        elif any(one.name == "passphrase_file" for one in command.params):
            found[path] = {option for one in command.params for option in one.opts}

    look(typer.main.get_command(app), ())
    return found


def test_every_hint_of_a_command_that_signs_names_options_that_it_has(
    start, standing, ask, assay, person, models, data, tmp_path
) -> None:
    start().ready()
    person("key", "new", "--as", "ada")
    person("key", "new", "--as", "bob")
    file = next((data.parent / "config").rglob("bob.admission"))
    edited = tmp_path / "edited.toml"
    edited.write_text((data / "policy" / "in-force.toml").read_text().replace("min_gain = 1.0", "min_gain = 2.0"))
    item = {"kind": "checklist", "items": [{"item": "length", "name": "length", "target": 60}]}
    job = standing.ready().submit(SubmitJob(question="q", spec=SPEC.validate_python(item))).id
    key = str(next((data.parent / "config").rglob("ada")))
    asked: dict[tuple[str, ...], list[str]] = {
        ("model", "approve"): ["candidate", "--as", "ada"],
        ("model", "reject"): ["candidate", "--as", "ada"],
        ("key", "new"): ["--as", "eve"],
        ("key", "admit"): [str(file), "--as", "ada"],
        ("key", "revoke"): ["ada", "--as", "ada"],
        ("policy", "sign"): [str(edited), "--as", "ada"],
        ("jobs", "validate"): [job, "--key", key],
    }
    commands = signing_commands()
    assert commands.keys() == asked.keys()
    for command, arguments in asked.items():
        at = ask if command == ("jobs", "validate") else assay  # a job that waits, where nobody works on it
        run = at(*command, *arguments)  # nobody is at a terminal
        hint = run.stderr.splitlines()[-1]
        named = re.findall(r"--[a-z-]+", hint)
        assert (run.returncode, bool(named)) == (2, True), (command, run.stderr)
        assert set(named) <= commands[command], (command, hint)
    hint = assay("model", "reject", "candidate", "--as", "ada").stderr.split()
    said = hint[hint.index("--decision") + 1]
    assert person("model", "reject", "candidate", "--as", "ada", "--decision", said).returncode == 0


def test_a_key_is_looked_for_before_anything_is_asked_and_a_passphrase_three_times(monkeypatch, tmp_path) -> None:
    made = make_key(tmp_path / "assay" / "keys", "ada", PASSPHRASE)
    typed = iter(["wrong one", "wrong two", PASSPHRASE, "wrong", "wrong", "wrong"])
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(getpass, "getpass", lambda prompt: next(typed))
    assert SigningOptions().signer().public == made.public
    with pytest.raises(WrongPassphraseError):
        SigningOptions().signer()
    assert next(typed, None) is None
