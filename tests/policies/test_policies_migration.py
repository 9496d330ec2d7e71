"""A policy of an earlier version stays in force as it was, and is written anew with the same meaning."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_policies_gates import APPROVED, GOOD, NOW, evidence, items

from policies.contract.rules import Section
from policies.decide import decide
from policies.errors import PolicyError
from policies.gates.gate import Gate, GateFigure
from policies.gates.registry import GATES
from policies.migration import migrate
from policies.policy import load, parse, read_content

EARLIER = Path(__file__).parents[1] / "fixtures" / "earlier"
OLD = (EARLIER / "policy-4.toml").read_text()
FIRST = (EARLIER / "policy-5.toml").read_bytes()
"""The packaged file of the first release with this version: every later one has to read it."""


def old(*changes: tuple[str, str]) -> bytes:
    text = OLD
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return text.encode()


def test_the_packaged_policy_of_the_version_before_means_what_the_packaged_one_means_now() -> None:
    migrated = parse(migrate(old(), "policy.toml").text.encode(), "new")
    assert migrated.model_dump() == load().model_dump()
    assert parse(old(), "old", in_force=True).model_dump() == load().model_dump()


COST = OLD[OLD.index("[promotion.cost]") : OLD.index("[promotion.approval]")]
SELFTEST = OLD[OLD.index("[promotion.selftest]") : OLD.index("[promotion.hacks]")]


@pytest.mark.parametrize(
    "changes",
    [
        (("min_gain = 1.0", "min_gain = 2.5"), ("people = 1", "people = 3")),
        (('who = ["*"]', 'who = ["ada", "b\\"ob"]'),),
        (("[data.shares] ", '[data.shares]\ngcd = 10.0\n"with space" = 5.0\n#'),),
        (("refusal = false", "refusal = true"), ("egress = true", "egress = false"), ("hacks]", "hacks] # ours")),
        (("required = true\nmax_rate", "required = false\nmax_rate"),),
        (('check = "any", then = "allow" }', 'check = "lean", then = "deny" }'),),
        ((COST, ""), ("[promotion] ", "[promotion]\ncost = {required = true, max_tokens = 2.0, max_calls = 9.0}\n#")),
    ],
)
def test_every_value_is_kept_and_only_the_form_is_new(changes: tuple[tuple[str, str], ...]) -> None:
    content = old(*changes)
    migrated = parse(migrate(content, "policy.toml").text.encode(), "new")
    assert migrated.model_dump() == parse(content, "old", in_force=True).model_dump()


def test_comments_stay_with_what_they_are_about() -> None:
    found = migrate(
        old(("margin = 10.0  ", "# agreed in May\nmargin = 12.0  "), ("# it cheats", "# it cheats, see above")), "p"
    ).text
    assert "# agreed in May\nmargin = 12.0                 # points of 100 that it may be worse\n" in found
    assert "# it cheats, see above\n" in found
    assert "max_age_hours = 168.0         # of the evaluation\n" in found


def test_what_is_stricter_than_before_is_said() -> None:
    lax = old((SELFTEST, SELFTEST.replace("true", "false")))
    found = migrate(lax, "policy.toml")
    assert any(line.startswith("selftest: now required; without it") for line in found.differences)
    assert "[gates.selftest]" in found.text
    in_force = parse(lax, "policy.toml", in_force=True)
    assert "selftest" not in {gate.name for gate in in_force.gates.asked}


def test_rules_on_gates_that_are_not_asked_go_and_are_named() -> None:
    found = migrate(old(("required = true\nmax_rate", "required = false\nmax_rate")), "policy.toml")
    assert "rules: dropped those on hacks, which could not apply" in found.differences
    assert 'when = "hacks"' not in found.text


def test_a_policy_in_force_decides_as_it_did() -> None:
    before, now = parse(old(), "old", in_force=True), load()
    for material in (evidence(GOOD), evidence(GOOD, **APPROVED), evidence(items(100, 5, 80, 200)), evidence([])):
        made = [decide(material, one, policy_digest="p", id="d", made_at=NOW) for one in (before, now)]
        assert made[0] == made[1]
    assert before.digest != now.digest


@pytest.mark.parametrize(
    "content", [b"version = 4\n", b"version = 4\n[promotion]\nrules = 3\n", b'version = 4\npromotion = "x"\n']
)
def test_what_is_no_policy_of_the_version_that_it_names_is_refused(content: bytes) -> None:
    with pytest.raises(PolicyError, match="not a policy of version 4"):
        parse(content, "policy.toml", in_force=True)
    with pytest.raises(PolicyError):
        migrate(content, "policy.toml")


def test_only_an_earlier_version_is_migrated() -> None:
    with pytest.raises(PolicyError, match="already version 5"):
        migrate(*read_content())
    with pytest.raises(PolicyError, match="version 3 is no longer supported"):
        migrate(b"version = 3\n", "policy.toml")


# a release with one more gate


class CalmRules(Section):
    most: float


def calm(material, rules, context):
    return (GateFigure("calm", 1.0, rules.most).passed("calm"),)


LATER = (*GATES, Gate("calm", CalmRules, calm))


def test_a_file_stays_valid_with_the_same_digest_in_a_release_that_has_one_more_gate() -> None:
    assert parse(FIRST, "p", registry=LATER).digest == parse(FIRST, "p").digest
    assert parse(FIRST, "p", registry=LATER).gates.asked == parse(FIRST, "p").gates.asked
    assert parse(FIRST, "p").model_dump() == load().model_dump()


def test_a_gate_that_a_file_names_is_asked_with_its_own_section() -> None:
    content = FIRST + b"\n[gates.calm]\nmost = 2.0\n"
    with pytest.raises(PolicyError, match="unknown gate"):
        parse(content, "p")
    policy = parse(content, "p", registry=LATER)
    found = decide(evidence(GOOD), policy, policy_digest="p", id="d", made_at=NOW).findings
    assert [(one.gate, one.threshold) for one in found][-1] == ("calm", 2.0)
    with pytest.raises(PolicyError, match=r"gates\.calm\.most: missing key"):
        parse(FIRST + b"\n[gates.calm]\n", "p", registry=LATER)


def test_no_row_of_the_registry_may_make_an_installed_file_invalid() -> None:
    """A gate that cannot be left out is in the first file of this version; a later row has to be one that can."""
    first = {gate.name for gate in parse(FIRST, "p").gates.asked}
    assert {gate.name for gate in GATES if gate.never_missing} <= first
