"""What is done about a night is a function of facts, and no facts make it run twice or against a person's will."""

from __future__ import annotations

from itertools import product

import pytest

from appliance.nights.decide import Action, NightFacts, NightStep, decide
from appliance.nights.machine import MachineSnapshot, Use, unknown, use_of
from appliance.nights.settings import IdleSettings, ScheduleSettings
from appliance.records.nights import Night, NightState

RULES = ScheduleSettings(max_hours=5.0, max_energy=2.0)
NIGHTS = [
    Night(
        key="2026-11-23",
        opens="",
        closes="",
        state=state,
        cycle=cycle,
        begins=begins,
        seconds=seconds,
        joules=joules,
        updated="",
    )
    for state, cycle, begins, seconds, joules in product(
        NightState, ("", "night-1"), (False, True), (0.0, 20_000.0), (None, 1.0, 1e8)
    )
]
BOTH = (False, True)
Decided = list[tuple[NightFacts, Action]]


@pytest.fixture(scope="module")
def decided() -> Decided:
    """All that facts can be, one value of each kind, with what is done about them."""
    every = product(
        NIGHTS,
        BOTH,
        BOTH,
        BOTH,
        BOTH,
        ("", "night-1", "night-0"),
        BOTH,
        ("", "paused by a person"),
        (None, Use("a GPU is used", True)),
        BOTH,
    )
    return [(facts, decide(facts, RULES)) for facts in (NightFacts(*one) for one in every)]


def test_nothing_works_outside_of_its_window_or_while_anything_holds_it(decided: Decided) -> None:
    works = [facts for facts, action in decided if action.step in (NightStep.BEGIN, NightStep.GO_ON)]
    assert works
    for facts in works:
        assert facts.is_open
        assert not facts.early
        assert not facts.paused
        assert facts.use is None
        assert facts.quiet
        assert facts.night.seconds < 3600 * 5
        assert (facts.night.joules or 0) < 7.2e6


def test_a_night_that_has_a_cycle_or_has_ended_never_begins_another(decided: Decided) -> None:
    begins = [facts for facts, action in decided if action.step is NightStep.BEGIN]
    assert begins
    for facts in begins:
        assert facts.night.cycle == ""
        assert facts.unfinished == ""
        assert facts.night.state not in (NightState.DONE, NightState.STOPPED)


def test_a_person_s_cycle_is_neither_gone_on_with_nor_stopped(decided: Decided) -> None:
    steps = {
        action.step
        for facts, action in decided
        if facts.unfinished and not facts.of_a_night and facts.unfinished != facts.night.cycle
    }
    assert steps == {NightStep.NOTHING, NightStep.WAIT, NightStep.CLOSE}


def test_a_night_whose_window_is_over_is_closed_with_a_reason(decided: Decided) -> None:
    open_states = (NightState.OPEN, NightState.RUNNING, NightState.HELD)
    over = [
        action
        for facts, action in decided
        if not facts.is_open and not facts.early and facts.night.state in open_states
    ]
    assert over
    for action in over:
        assert action.step is NightStep.CLOSE
        assert action.state is not None
        assert action.reason or action.state is NightState.DONE


def test_a_gpu_that_another_program_uses_ends_a_night_at_once_and_a_load_only_keeps_one_from_beginning() -> None:
    rules = IdleSettings(max_load=2.0, session=30)
    used = use_of(MachineSnapshot(gpu_users=("python (process 7)",)), rules, working=True)
    assert used is not None
    assert used.at_once
    assert use_of(MachineSnapshot(gpu_users=(), load=9.0), rules, working=True) is None
    loaded = use_of(MachineSnapshot(load=9.0), rules, working=False)
    assert loaded is not None
    assert "9.0, above 2" in loaded.reason
    typed = use_of(MachineSnapshot(typed_seconds=130.0), rules, working=True)
    assert typed is not None
    assert "2 minutes ago" in typed.reason
    assert use_of(MachineSnapshot(typed_seconds=1801.0), rules, working=True) is None
    assert use_of(MachineSnapshot(gpu_users=("x",)), IdleSettings(gpu=False), working=True) is None


def test_what_a_machine_does_not_show_is_said() -> None:
    said = unknown(MachineSnapshot(), IdleSettings(max_load=1.0, session=5.0), energy=True)
    assert len(said) == 4
    assert any("max_energy" in one for one in said)
    assert unknown(MachineSnapshot(gpu_users=()), IdleSettings(), energy=False) == ()
