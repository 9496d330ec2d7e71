"""The stricter rule counts: nothing that is asked for, and no rule, can make another one weaker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.contract.rules import Backend, Tier
from policies.permissions import ORDER, Use, backend_for, backends_of, require_known_families, tier_for
from policies.policy import Policy, PolicyError, load

PURPOSES = st.sampled_from(["training", "evaluation", "jobs"])
TIERS = st.sampled_from(ORDER)


def policy(
    *,
    tiers: dict[str, Tier] | None = None,
    families: dict[str, Tier] | None = None,
    model_code: Backend = "gvisor",
    tools: Backend = "nsjail",
) -> Policy:
    packaged = load()
    return packaged.model_copy(
        update={
            "sandboxes": packaged.sandboxes.model_copy(
                update={
                    "model_code": model_code,
                    "tools": tools,
                    "tiers": packaged.sandboxes.tiers.model_copy(update={**(tiers or {}), "families": families or {}}),
                }
            )
        }
    )


def test_the_packaged_policy_lets_code_earn_its_tier() -> None:
    assert [tier_for(load(), use, "digits", "shared") for use in ("training", "evaluation", "jobs")] == ["shared"] * 3


def test_each_purpose_has_a_rule_of_its_own() -> None:
    rules = policy(tiers={"training": "shared", "evaluation": "process", "jobs": "sandbox"})
    found = [tier_for(rules, use, "digits", "shared") for use in ("training", "evaluation", "jobs")]
    assert found == ["shared", "process", "sandbox"]


def test_a_rule_about_a_family_holds_for_every_purpose_and_for_no_other_family() -> None:
    rules = policy(families={"digits": "sandbox"})
    assert tier_for(rules, "training", "digits", "shared") == "sandbox"
    assert tier_for(rules, "training", "linear", "shared") == "shared"


@given(PURPOSES, TIERS, TIERS, TIERS)
def test_the_answer_is_one_of_the_three_and_never_weaker_than_any(
    use: Use, by_purpose: Tier, by_family: Tier, asked: Tier
) -> None:
    found = tier_for(policy(tiers={use: by_purpose}, families={"digits": by_family}), use, "digits", asked)
    assert found in (by_purpose, by_family, asked)
    assert ORDER.index(found) == max(map(ORDER.index, (by_purpose, by_family, asked)))


def test_model_code_and_tools_have_backends_of_their_own() -> None:
    assert (backend_for(load(), "model_code"), backend_for(load(), "tools")) == ("gvisor", "nsjail")
    assert backend_for(policy(model_code="nsjail"), "model_code") == "nsjail"


def test_a_backend_that_nothing_is_run_by_is_not_among_them() -> None:
    assert backends_of(load()) == ("gvisor", "nsjail")
    assert backends_of(policy(tools="gvisor")) == ("gvisor",)


def test_a_rule_about_a_family_that_does_not_exist_is_refused_with_those_that_do() -> None:
    require_known_families(policy(families={"digits": "sandbox"}), ["digits", "linear"], "policy.toml")
    with pytest.raises(PolicyError, match=r"tiers\.families: unknown family 'digit'") as caught:
        require_known_families(policy(families={"digit": "sandbox"}), ["digits", "linear"], "policy.toml")
    assert "digits, linear" in caught.value.hint
