"""The policy file is read whole or refused with the line and the cure."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS
from pydantic import ValidationError
from tables import table

import policies
from policies.contract.rules import Section
from policies.errors import PolicyError
from policies.gates.gate import Gate, GateFigure
from policies.gates.registry import GATES
from policies.policy import load, parse

DEFAULT = (Path(policies.__file__).parent / "default_policy.toml").read_text()


def refused(text: str) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        parse(text.encode(), "policy.toml")
    assert caught.value.hint
    return caught.value


def test_the_packaged_policy_asks_for_evidence_and_for_a_person() -> None:
    policy = load()
    assert policy.approval.required
    assert policy.sandboxes.allow_unsandboxed is False
    assert (policy.sandboxes.model_code, policy.sandboxes.tools) == ("gvisor", "nsjail")
    assert 0 < policy.gates.improvement.alpha <= 0.05
    assert policy.digest == hashlib.sha256(DEFAULT.encode()).hexdigest()


def test_the_digest_is_that_of_the_bytes_and_follows_every_change(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(DEFAULT + "# a word more\n")
    assert load(path).digest == hashlib.sha256(path.read_bytes()).hexdigest() != load().digest
    assert load(path).gates == load().gates


def test_a_policy_made_in_memory_has_a_digest_of_its_content() -> None:
    policy = load().model_copy(update={"_digest": ""})
    other = type(policy)(**{**dict(policy), "jobs": policy.jobs.model_copy(update={"max_queued": 2})})
    assert len(other.digest) == 64
    assert other.digest != type(policy)(**dict(policy)).digest


def test_an_unknown_key_is_named_with_its_line() -> None:
    error = refused(DEFAULT.replace("min_gain = 1.0", "min_gian = 1.0"))
    line = next(n for n, text in enumerate(DEFAULT.splitlines(), 1) if text.startswith("min_gain"))
    assert f"line {line}: gates.improvement.min_gian: unknown key" in str(error)
    assert "gates.improvement.min_gain: missing key" in str(error)


def test_an_unknown_section_is_named() -> None:
    assert "promotoin: unknown key" in str(refused(DEFAULT + "\n[promotoin]\nx = 1\n"))


@table(
    "key",
    ["min_items", "required", "allow_unsandboxed", "model_code", "tools", "evaluation", "version", "max_age_hours"],
)
def test_a_missing_key_is_asked_for_and_never_guessed(key: str) -> None:
    without = "\n".join(line for line in DEFAULT.splitlines() if not line.startswith(f"{key} ="))
    error = refused(without)
    assert f"{key}: missing key" in str(error)
    assert error.hint.startswith("add ")


def test_a_missing_section_is_asked_for() -> None:
    error = refused(DEFAULT[: DEFAULT.index("[sandboxes]")])
    assert "sandboxes: missing key" in str(error)


def test_the_table_of_families_must_be_there_and_may_be_empty() -> None:
    error = refused(
        "\n".join(line for line in DEFAULT.splitlines() if not line.startswith("[sandboxes.tiers.families]"))
    )
    assert "sandboxes.tiers.families: missing key" in str(error)
    assert parse(DEFAULT.encode(), "policy.toml").sandboxes.tiers.families == {}


@pytest.mark.parametrize("gate", ["integrity", "selftest", "contamination", "improvement", "evidence", "approval"])
def test_a_gate_that_may_never_be_missing_is_asked_for_with_the_reason(gate: str) -> None:
    section = re.search(rf"\[gates\.{gate}\].*?\n\n", DEFAULT, re.DOTALL)
    assert section is not None
    rule = re.search(rf".*when = \"{gate}\".*\n", DEFAULT)
    error = refused(DEFAULT.replace(section[0], "").replace(rule[0] if rule else "", ""))
    assert f"gates.{gate}: this gate is required: without it" in str(error)
    assert error.hint.startswith(f"add the section [gates.{gate}]")


def test_a_gate_that_there_is_not_is_named_with_the_nearest_one() -> None:
    assert "gates.driftt: unknown gate: did you mean 'drift'?" in str(
        refused(DEFAULT.replace("[gates.drift]", "[gates.driftt]"))
    )


def test_a_rule_about_a_gate_that_the_file_does_not_ask_for_is_refused() -> None:
    error = refused(DEFAULT.replace("[gates.egress]", "# [gates.egress]"))
    assert "this file does not name the gate 'egress'" in str(error)
    assert "remove the rule" in error.hint


@pytest.mark.parametrize(
    ("rule", "instead", "message"),
    [
        ('is = "passed", then = "promote"', 'is = "failed", then = "promote"', "may promote"),
        (
            'when = "all", is = "passed", then = "promote"',
            'when = "any", is = "passed", then = "promote"',
            "may promote",
        ),
        ('when = "hacks"', 'when = "hack"', "unknown gate 'hack': did you mean 'hacks'?"),
        ('check = "any", then = "allow"', 'check = "any"', "jobs.rules.0.then: missing key"),
    ],
)
def test_a_rule_that_means_nothing_or_too_much_is_refused_on_its_line(rule: str, instead: str, message: str) -> None:
    error = refused(DEFAULT.replace(rule, instead))
    line = next(number for number, text in enumerate(DEFAULT.splitlines(), 1) if rule in text)
    assert str(error).startswith(f"policy.toml, line {line}: ")
    assert message in str(error)


def test_people_s_jobs_are_never_learned_from_and_training_never_meets_a_sealed_question() -> None:
    assert "data.train_on_jobs" in str(refused(DEFAULT.replace("train_on_jobs = false", "train_on_jobs = true")))
    assert "data.sealed_in_training" in str(
        refused(DEFAULT.replace("sealed_in_training = 0", "sealed_in_training = 9"))
    )


def test_many_faults_fit_on_a_screen() -> None:
    error = refused("version = 1\n" + "".join(f"key{number} = 1\n" for number in range(100)))
    assert len(str(error).splitlines()) < 20
    assert str(error).endswith("more")


def test_the_packaged_file_is_read_in_two_minutes() -> None:
    assert len(DEFAULT.split()) < 1_000


@pytest.mark.parametrize("version", ["0", "2", "5", "true", "1.0", '"1"', "[1]"])
def test_a_file_of_another_version_is_refused_with_one_fault_and_what_to_do(version: str) -> None:
    error = refused(DEFAULT.replace("version = 1", f"version = {version}") + "unknown = 3\n")
    line = DEFAULT.splitlines().index("version = 1") + 1
    assert str(error).startswith(f"policy.toml, line {line}: version: unsupported version ")
    assert str(error).endswith("the only version is 1")
    assert "`assay policy show --out policy.toml`" in error.hint


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ('model_code = "gvisor"', 'model_code = "docker"'),
        ('model_code = "gvisor"', 'model_code = ["gvisor"]'),
        ('tools = "nsjail"', 'tools = ""'),
        ('training = "shared"', 'training = "Sandbox"'),
        ('jobs = "shared"', "jobs = 2"),
        ("[sandboxes.tiers.families]", '[sandboxes.tiers.families]\ndigits = "none"'),
        ("[sandboxes.tiers.families]", "[sandboxes.tiers.families]\ndigits = {}"),
    ],
)
def test_isolation_that_does_not_exist_is_refused_with_its_line(line: str, instead: str) -> None:
    key = instead.splitlines()[-1].split()[0]
    error = refused(DEFAULT.replace(line, instead))
    assert f".{key}: " in str(error)
    assert "line " in str(error)


def test_isolation_cannot_be_switched_off() -> None:
    error = refused(DEFAULT.replace("allow_unsandboxed = false", "allow_unsandboxed = true"))
    assert "without isolation" in error.hint


@table(
    ("key", "value"),
    [
        ("alpha", "0.9"),
        ("alpha", "0"),
        ("alpha", "nan"),
        ("min_gain", '"1"'),
        ("min_gain", "-1"),
        ("required", "1"),
        ("required", '"true"'),
        ("people", "0"),
        ("people", "1.5"),
        ("margin", "inf"),
        ("max_infra_errors", "-0.1"),
        ("version", "0"),
        ("version", "6"),
    ],
)
def test_values_out_of_bounds_or_of_another_type_are_refused(key: str, value: str) -> None:
    changed = "\n".join(f"{key} = {value}" if line.startswith(f"{key} =") else line for line in DEFAULT.splitlines())
    assert f"{key}: " in str(refused(changed))


def test_broken_toml_is_refused_with_its_line() -> None:
    assert "line 2" in str(refused("version = 1\nmin_items = = 3\n"))


def test_a_file_that_is_not_text_is_refused() -> None:
    with pytest.raises(PolicyError, match="not UTF-8"):
        parse(b"\xff\xfe\x00", "policy.toml")


def test_a_file_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="No such file") as caught:
        load(tmp_path / "policy.toml")
    assert "packaged policy" in caught.value.hint
    with pytest.raises(PolicyError, match="directory"):
        load(tmp_path)


@settings(max_examples=FROM_STRANGERS)
@given(st.binary(max_size=200))
def test_whatever_the_bytes_they_are_refused_and_never_crash(content: bytes) -> None:
    with pytest.raises(PolicyError):
        parse(content, "policy.toml")


def test_rules_in_force_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        load().approval.required = False  # type: ignore[misc]


# a release with one more gate
class CalmRules(Section):
    most: float


def calm(material, rules, context):
    return (GateFigure("calm", 1.0, rules.most).passed("calm"),)


LATER = (*GATES, Gate("calm", CalmRules, calm))


def test_a_file_stays_valid_with_the_same_digest_in_a_release_that_has_one_more_gate() -> None:
    later = parse(DEFAULT.encode(), "p", registry=LATER)
    assert later.digest == load().digest
    assert later.gates.asked == load().gates.asked


def test_a_gate_that_a_file_names_is_asked_with_its_own_section() -> None:
    content = DEFAULT + "\n[gates.calm]\nmost = 2.0\n"
    assert "unknown gate" in str(refused(content))
    assert [gate.name for gate in parse(content.encode(), "p", registry=LATER).gates.asked][-1] == "calm"
    with pytest.raises(PolicyError, match=r"gates\.calm\.most: missing key"):
        parse(f"{DEFAULT}\n[gates.calm]\n".encode(), "p", registry=LATER)


def test_the_packaged_file_names_every_gate_that_may_never_be_missing() -> None:
    assert {gate.name for gate in GATES if gate.never_missing} <= {gate.name for gate in load().gates.asked}


def test_a_policy_requires_a_kernel_without_known_holes_only_if_it_says_so() -> None:
    assert not parse(DEFAULT.encode(), "p").verifiers.require_kernel_floor
    asked = parse(f"{DEFAULT}\n[verifiers]\nrequire_kernel_floor = true\n".encode(), "p")
    assert asked.verifiers.require_kernel_floor
    assert "verifiers.require_kernel_floor" in str(refused(f"{DEFAULT}\n[verifiers]\nrequire_kernel_floor = 1\n"))
