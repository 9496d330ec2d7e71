"""Tells an owner when a taskset has too few sealed rows for the policy to judge it alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from appliance.curriculum.own_tasksets import read_own
from appliance.settings.policy_files import read_policy
from common.errors import HintedError
from curriculum.contract.task import Split
from curriculum.names import OWN
from policies.gates import non_regression, retention
from policies.policy import Policy
from policies.statistics.sequential import questions_needed

PER_SEALED = 5
"""Rows of an owner's taskset for each sealed one."""
DISCORDANT = 0.1
"""Share of questions, in the estimate, that only one of two equally good models answers."""


def rows_missing(sealed: int, policy: Policy) -> str:
    """Returns a sentence on the rows that a taskset with this number of sealed ones lacks; empty if it lacks none."""
    rules = [one for gate in (non_regression.GATE, retention.GATE) if (one := policy.gates.get(gate)) is not None]
    least = max(one.min_items for one in rules)
    if sealed < least:
        return (
            f"{sealed} sealed rows, and the policy judges a taskset alone from {least}: about "
            f"{PER_SEALED * (least - sealed)} more rows are missing. Until then it is judged together with other small "
            "tasksets, or left out by name; no night waits for it"
        )
    half = DISCORDANT / 2
    shown = [questions_needed(one.margin / 100, one.alpha, gained=half, lost=half) or 0 for one in rules]
    if sealed < max(shown):
        return (
            f"{sealed} sealed rows; about {max(shown)} show that a taskset lost nothing, so about "
            f"{PER_SEALED * (max(shown) - sealed)} more rows would help. With fewer, the observed loss decides once "
            "all were asked"
        )
    return ""


def small_tasksets(data: Path, names: Iterable[str], policy: Policy | None = None) -> dict[str, str]:
    """Returns the owner's among these tasksets that have too few rows, each with a sentence. A taskset or policy that
    cannot be read is none of them: other checks report it."""
    found: dict[str, str] = {}
    try:
        policy = policy or read_policy(data)[0]
        for name in names:
            if name.startswith(f"{OWN}/"):
                found[name] = rows_missing(len(read_own(data, name).keys(Split.SEALED)), policy)
    except (HintedError, OSError):
        return {}
    return {name: sentence for name, sentence in found.items() if sentence}
