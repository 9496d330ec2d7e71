"""Rules on what is learned from: read whole, and never broken by what a step draws."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import policies
from appliance.settings.policy_files import parse_policy
from curriculum.contract.task import Split
from curriculum.registry import CALCULATORS
from curriculum.sealed import TaskStream, ceil_share
from policies.errors import PolicyError
from policies.permissions import shares_of
from policies.policy import load

DEFAULT = (Path(policies.__file__).parent / "default_policy.toml").read_text()


def with_data(families: str = '["*"]', max_share: str = "40.0", shares: str = "") -> str:
    text = DEFAULT.replace('families = ["*"] ', f"families = {families} ").replace(
        "max_share = 40.0", f"max_share = {max_share}"
    )
    head = "[data.shares]"
    line = next(line for line in text.splitlines() if line.startswith(head))
    return text.replace(line, f"{line}\n{shares}")


def test_the_packaged_policy_trains_on_every_family() -> None:
    assert set(shares_of(load().data, CALCULATORS)) == set(CALCULATORS)


def test_a_family_that_is_not_named_or_has_no_share_is_not_trained_on() -> None:
    policy = parse_policy(with_data('["digits", "linear", "powers"]', "100.0", "powers = 0.0").encode(), "p")
    shares = shares_of(policy.data, CALCULATORS)
    assert shares == {"digits": 100.0, "linear": 100.0}
    drawn = TaskStream(Split.TRAIN, 1, shares=shares).tasks(0, 60)
    assert {task.taskset for task in drawn} == {"digits", "linear"}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (with_data('["digit"]', "100.0"), "unknown family 'digit'"),
        (with_data('["*", "digits"]'), "others are named too"),
        (with_data(shares="digit = 10.0"), "data.shares: unknown family 'digit'"),
        (with_data('["digits", "linear"]'), "at most 80 % of a step"),
        (with_data(shares="digits = 101.0"), "data.shares.digits"),
        (with_data("[]"), "data.families"),
        (DEFAULT.replace("fresh_nights = 1 ", "fresh_nights = -1 "), "data.fresh_nights"),
    ],
)
def test_rules_that_mean_nothing_are_refused_with_what_to_do(written: str, message: str) -> None:
    with pytest.raises(PolicyError) as met:
        parse_policy(written.encode(), "policy.toml")
    assert message in str(met.value)
    assert met.value.hint


@given(
    st.lists(st.floats(5, 100), min_size=7, max_size=7).filter(lambda shares: sum(shares) >= 100),
    st.integers(0, 50),
    st.integers(1, 40),
)
def test_no_family_is_ever_more_of_a_step_than_its_share(shares: list[float], step: int, count: int) -> None:
    """Also of each beginning, which is what a step that is refilled has drawn before."""
    rules = dict(zip(CALCULATORS, shares, strict=True))
    stream = TaskStream(Split.TRAIN, 3, shares=rules)
    drawn = [task.taskset for task in stream.tasks(step, count)]
    for end in range(1, count + 1):
        assert all(number <= ceil_share(rules[name], end) for name, number in Counter(drawn[:end]).items())
    assert [task.taskset for task in stream.tasks(step, count + 3)][:count] == drawn
