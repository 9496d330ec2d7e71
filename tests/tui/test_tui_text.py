"""The screen's words are pure functions of the records."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

import pytest
import tui_records as made
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS
from pydantic import JsonValue
from rich.cells import cell_len
from tables import table

from appliance.client import (
    AuditLine,
    CanaryView,
    CheckpointView,
    Decision,
    DecisionOutcome,
    Event,
    GateFinding,
    GateOutcome,
    MachineView,
    PassCount,
    Purpose,
    RolloutView,
    Status,
    ToolStatus,
    WorkerStatus,
    rates_of,
)
from appliance.client.gateway import SessionRow
from appliance.client.nights import HeldOutNight, PromotionView, TasksetChange
from appliance.client.screen import CycleCurves, GpuUse, ProcessUse
from appliance.client.status import GatewayStatus
from appliance.daemon.views.cycle_views import YOURS
from appliance.records.cycles import CycleState
from appliance.records.evaluations import ItemResult
from appliance.records.jobs import MEANING, Artifact, JobState, JobStep, Validation
from appliance.records.nights import Canary, CanaryState
from policies.canary import Counts
from policies.policy import load
from runtime.sandbox import Usage
from tui.screens import gateway, governance, jobs, models, rollouts
from tui.screens.curriculum import map_text
from tui.screens.history import history_text
from tui.screens.jobs import JobRecord
from tui.screens.learning import bounds_of, heights_of, labels_of, subtitle_of, tasksets_text, ticks_of
from tui.screens.models import ItemPair, summary_text
from tui.screens.now import answer_text, machine_text, queue_text, waits_for_you, without_repeats, wrong_now
from tui.screens.rollouts import rollout_text
from tui.widgets.night_curve import night_curve
from tui.widgets.panels import LEAST_CELLS, due, last_width
from tui.widgets.progress import cycle_text, rate
from tui.widgets.signs import decision_detail, figure_text
from tui.widgets.text import markup_safe, plain, sparkline, wilson
from verifiers.contract.statement import Assurance, StatementPart
from verifiers.contract.verdict import Outcome, Verdict


def snapshot(**changes: object) -> Status:
    return Status(
        version="1",
        pid=1,
        data="/d",
        started=made.at(-60),
        uptime_seconds=60.0,
        worker=WorkerStatus(state="idle"),
        cycle=made.cycle(),
        aliases={},
        decision=None,
        jobs={},
        next_cycle=None,
        policy="p",
        last_event=0,
    ).model_copy(update=changes)


def numbered(*events: Event) -> tuple[tuple[int, Event], ...]:
    return tuple(enumerate(events, 1))


def event(kind: str, minutes: float = -1.0, **figures: float) -> Event:
    return Event(kind=kind, text=kind, figures=figures, created=made.at(minutes))


@given(
    st.integers(40, 200),
    st.text(max_size=60),
    st.sampled_from(["prepare", "warm_start", "training", "evaluation", "decision", "done", "elsewhere"]),
    st.sampled_from(CycleState),
    st.floats(0, 1e6),
)
def test_a_cycle_never_takes_more_than_three_lines_of_the_width(
    width: int, name: str, phase: str, state: CycleState, figure: float
) -> None:
    cycle = made.cycle(phase=phase, state=state, id=name, failure=name)
    metrics = {"success": figure, "tool_errors_in_correct": figure, "tokens": figure, "sampling_seconds": 0.1}
    steps = [event("step", step=float(i), steps=10.0, success=i / 10) for i in range(10)]
    lines = cycle_text(snapshot(cycle=cycle, step_metrics=metrics), numbered(*steps), width).plain.split("\n")
    assert len(lines) <= 3
    assert max(cell_len(line) for line in lines) <= width


def test_the_bar_counts_finished_steps_of_the_present_phase_only() -> None:
    earlier = event("warm_start", step=500.0, steps=500.0)
    begun = numbered(earlier, event("phase"))
    assert "500" not in cycle_text(snapshot(), begun, 80).plain
    assert "working" in cycle_text(snapshot(), begun, 80).plain
    first = numbered(earlier, event("phase"), event("step", step=0.0, steps=60.0))
    assert "  1 of 60 steps  2 %" in cycle_text(snapshot(), first, 80).plain
    looked = numbered(event("phase"), event("evaluation", step=2.0, steps=4.0))
    assert "evaluation 2 of 4  50 %" in cycle_text(snapshot(), looked, 80).plain


def test_events_of_an_earlier_cycle_do_not_count() -> None:
    old = event("step", minutes=-100.0, step=59.0, steps=60.0)
    assert "waiting for its worker" in cycle_text(snapshot(), numbered(old), 80).plain


def test_a_finished_cycle_says_where_its_time_went() -> None:
    done = snapshot(cycle=made.cycle(phase="done", state=CycleState.DONE))
    assert "done in 2.6 min: prepare 1 s, warm start 88 s, training 64 s" in cycle_text(done, (), 100).plain


@given(st.lists(st.floats(-2, 3), max_size=50), st.integers(0, 30))
def test_a_sparkline_is_as_long_as_its_values_and_never_longer_than_its_room(values: list[float], width: int) -> None:
    assert len(sparkline(values, width)) == min(len(values), width)


def test_a_sparkline_goes_from_the_bottom_to_the_top() -> None:
    assert sparkline([0.0, 0.5, 1.0], 8) == "▁▅█"


def test_a_rollouts_detail_says_what_its_session_used() -> None:
    one = made.judged("r")
    used = Usage(calls=3, seconds=0.25, output_bytes=1200, moves=1, cpu_seconds=0.5, peak_memory_mib=41.6)
    rollout = one.rollout.model_copy(update={"usage": used})
    text = rollout_text(RolloutView.of(one.model_copy(update={"rollout": rollout}))).plain
    assert "3 calls in 0.25 s, 1,200 bytes printed, moved 1 times, 0.50 s of processor, 42 MiB at most" in text
    assert "bytes printed" not in rollout_text(RolloutView.of(one)).plain


def test_a_rollout_whose_tokens_are_not_kept_any_more_is_not_said_to_have_none() -> None:
    one = made.judged("r")
    nodes = tuple(node.model_copy(update={"ids": (), "logprobs": ()}) for node in one.rollout.nodes)
    view = RolloutView.of(one.model_copy(update={"rollout": one.rollout.model_copy(update={"nodes": nodes})}))
    text = rollout_text(view).plain
    assert "1 turn, " in text
    assert "0 tokens" not in text
    assert view.weights == one.rollout.weights


def test_failed_calls_are_counted_beside_all_calls() -> None:
    assert rollouts.counted([]).plain == "0"
    assert rollouts.counted([ToolStatus.OK, ToolStatus.PARSE_ERROR, ToolStatus.TIMEOUT]).plain == "3 2✗"


@pytest.mark.parametrize(
    ("figure", "unit", "message"),
    [
        (31.24, "points", "+31.2"),
        (0.0, "people", "0"),
        (1.26, "hours", "1.3 h"),
        (2.0, "percent", "2.0 %"),
        (None, "points", "-"),
    ],
)
def test_a_gates_figure_has_its_unit(figure: float | None, unit: str, message: str) -> None:
    finding = GateFinding(gate="g", outcome=GateOutcome.PASSED, figure=figure, unit=unit, reason="r")
    assert figure_text(finding) == message


@settings(max_examples=FROM_STRANGERS)
@given(st.text())
def test_no_text_keeps_a_control_character(text: str) -> None:
    assert "\n" not in plain(text).plain
    assert "\x1b" not in plain(text, lines=True).plain


def test_a_model_that_is_tried_beside_the_champion_says_how_it_does(tmp_path) -> None:
    model = made.checkpoint(tmp_path, "better", parent=None, stage="training", step=1)
    rules = load().service
    canary = Canary(
        id="canary-1",
        candidate=model.manifest,
        champion="a" * 64,
        decision="d",
        rules=rules,
        state=CanaryState.SHARE,
        started=made.at(-60),
        share_since=made.at(-50),
    )
    shown = CanaryView(
        canary=canary,
        counts=Counts(replayed=12, lost=1, canary_passed=4, canary_failed=1, champion_passed=9),
        odds=2.5,
        needed=20.0,
        closes=made.at(60),
        closes_latest=made.at(600),
    )
    view = CheckpointView(checkpoint=model, aliases=("canary",), decision=None)
    text = models.detail(view, snapshot(canary=shown)).plain
    assert "answers 25 % of the jobs" in text
    assert "it verified 4 of 5, the champion 9 of 9" in text
    other = shown.model_copy(update={"canary": canary.model_copy(update={"candidate": "b" * 64})})
    assert "beside" not in models.detail(view, snapshot(canary=other)).plain
    working = shown.model_copy(update={"canary": canary.model_copy(update={"state": CanaryState.REPLAY})})
    assert "replays earlier jobs, 0 to go" in working.summary


def test_a_job_says_what_is_done_now_and_then_who_solved_it_and_what_carries_the_answer() -> None:
    steps = (
        JobStep(
            weights="w", attempts=2, branches=True, expected=0.456, failed=2, branches_failed=1, tokens=812, ended=True
        ),
        JobStep(weights="w", attempts=2, expected=0.1),
    )
    running = made.job("1", JobState.RUNNING, step="attempt 3 of 16", tries_done=2, budget_seconds=60.0, steps=steps)
    assert [cell.plain for cell in jobs.row(JobRecord(running)).cells][1:] == [
        "question",
        "running",
        "find x with 7x+3=45",
        "attempt 3 of 16",
    ]
    text = jobs.detail(JobRecord(running)).plain
    assert "budget  16 attempts, 60s; 2 tries done" in text
    said = "2 attempts that may branch, 46 % expected; 2 attempts made and 1 branch, none verified, 812 tokens"
    assert f"step 1  {said}\nstep 2  2 attempts, 10 % expected\n" in text
    solved = made.job("1", JobState.SOLVED, solved_by="z3 4.13", artifact="job-1")
    claim = StatementPart(part="that the answer meets the check", standing=Assurance.PROVED, by="\x1b]0;z3")
    artifact = Artifact(
        id="job-1",
        job="job-1",
        folder="artifacts/job-1",
        manifest="0" * 64,
        answer="6",
        weights="",
        verdict=Verdict(
            outcome=Outcome.PASS, score=1.0, verifier="predicate", version="1", reason="holds", seconds=0.1
        ),
        solved_by="z3 4.13",
        statement=(claim,),
        created=made.at(0),
    )
    text = jobs.detail(JobRecord(solved, artifact)).plain
    assert "z3 4.13" in text
    assert "that the answer meets the check (\\x1b]0;z3)" in text
    validation = Validation(verdict="not_meant", shown="0" * 64, person="ada", created="t", key="k", envelope="{}")
    changed = artifact.model_copy(
        update={"statement": (StatementPart(part=MEANING, standing=Assurance.OPEN, by="nobody"),)}
    )
    assert "(nobody)" in jobs.detail(JobRecord(solved, changed)).plain
    text = jobs.detail(JobRecord(solved.model_copy(update={"validation": validation}), changed)).plain
    assert ("(nobody)" in text, "not meant" in text, "(ada, t)" in text) == (False, True, True)


def test_the_machine_fits_a_box_of_a_narrow_screen() -> None:
    machine = MachineView(
        cores=2,
        cpu=1.0,
        load=1.0,
        memory_total=24 << 30,
        memory_available=20 << 30,
        disk_total=250 << 30,
        disk_free=int(59.7 * (1 << 30)),
        processes=(ProcessUse(name="core", pid=1, memory_bytes=148_000_000, cpu_seconds=3.2),),
    )
    lines = machine_text(machine).plain.splitlines()
    assert max(map(cell_len, lines)) <= 36  # half of 80 columns, without borders and margins
    assert lines[2].endswith(" 76 %, 60 GiB left")
    assert lines[-1] == "daemon    141 MiB, 3 s cpu"


@given(st.integers(0, 500), st.integers(0, 500))
def test_the_steps_on_an_axis_are_whole_and_equally_far_apart(first: int, more: int) -> None:
    ticks = ticks_of([float(first), float(first + more)])
    assert ticks[0] == first
    assert ticks[-1] <= first + more
    assert len(ticks) <= 6
    assert len({after - before for before, after in pairwise(ticks)}) <= 1
    assert all(tick == int(tick) for tick in ticks)


def test_an_entry_about_names_says_what_each_stands_for_now() -> None:
    what = {"before": {"champion": "a" * 64, "candidate": "b" * 64}, "after": {"champion": "b" * 64, "candidate": None}}
    line = AuditLine(number=7, at=made.at(0), kind="aliases", what=what)
    assert governance.row(line).cells[-1].plain == "champion -> bbbbbbbb, candidate -> none"


@pytest.mark.parametrize(
    ("kind", "what", "said"),
    [
        ("cycle", {"row": {"table": "cycles", "key": "night-1"}}, "night-1"),
        (
            "evaluation",
            {"row": {"table": "evaluations", "key": "night-1.evaluation.3271a9"}},
            "night-1.evaluation.3271a9",
        ),
        ("artifact", {"row": {"table": "artifacts", "key": "artifact-81aa"}}, "artifact-81aa"),
        ("step", {"row": {"table": "steps", "key": "night-1"}, "step": 29}, "step 29, night-1"),
        (
            "decision",
            {"decision": {"outcome": "hold", "candidate": "3" * 64, "reason": "nobody signed"}, "row": {"key": "d"}},
            "hold, 33333333, nobody signed",
        ),
        ("word", {"word": {"verdict": "approve", "person": "ada", "candidate": "3" * 64}}, "approve, 33333333, ada"),
        ("job.ended", {"job": "job-5f", "state": "solved", "priority": 5, "bundle": ""}, "job-5f, solved"),
        ("taskset.added", {"licence": "MIT", "digest": "ab"}, "licence MIT, digest ab"),
        ("aliases", {"before": {"champion": "a"}}, "champion a"),
    ],
)
def test_every_entry_says_what_it_is_about(kind: str, what: dict[str, JsonValue], said: str) -> None:
    line = AuditLine(number=7, at=made.at(0), kind=kind, what=what)
    assert governance.row(line).cells[-1].plain == said


def test_a_cancelled_night_says_so_and_is_at_nothing() -> None:
    cancelled = made.cycle(phase="training", state=CycleState.CANCELLED, seconds={"prepare": 3.0})
    first, second, *_ = cycle_text(snapshot(cycle=cancelled), (), 100).plain.split("\n")
    assert "✓ prepare  ✗ training" in first
    assert second == "cancelled after 3 s: prepare 3 s"


def test_a_gates_figure_and_its_taskset_are_said_once() -> None:
    found = [
        ("improvement", "+13.7 points on 512 questions"),
        ("non_regression/gcd", "gcd: +13.7 points on 73 questions"),
    ]
    findings = [
        GateFinding(gate=gate, outcome=GateOutcome.PASSED, figure=13.7, unit="points", reason=reason)
        for gate, reason in (*found, ("drift", "as far as before"))
    ]
    decision = Decision.model_construct(
        id="d", outcome=DecisionOutcome.HOLD, reason="r", findings=findings, would_change="", made_at="", policy="p"
    )
    lines = decision_detail(decision).plain.split("\n")
    assert [" ".join(line.split()) for line in lines[1:4]] == [
        "✓ improvement +13.7 points on 512 questions",
        "✓ non_regression/gcd +13.7 points on 73 questions",
        "✓ drift +13.7 as far as before",
    ]


def test_a_curve_of_one_point_says_which() -> None:
    assert [subtitle_of(points) for points in ([], [(0.0, 0.2513)], [(0.0, 0.1), (1.0, 0.2)])] == [
        "no point so far",
        "one point so far: 0.251",
        "",
    ]


@given(st.integers(10, 200))
def test_a_table_has_the_room_that_there_is_and_no_more_than_it_needs(room: int) -> None:
    columns = (("entry", 6), ("at", 16), ("what", 60))
    width = last_width(columns, room)
    assert LEAST_CELLS <= width <= 60
    assert 22 + width + 6 <= max(room, 22 + LEAST_CELLS + 6)


def test_what_the_gateway_says_has_room_at_80_columns() -> None:
    off = GatewayStatus(enabled=False, base_url="http://127.0.0.1:8700/v1", answers=False, tokens=0)
    assert len(off.summary) <= 78
    assert len(off.model_copy(update={"enabled": True}).summary) <= 78


def test_a_night_has_its_whole_name_at_80_columns() -> None:
    name = "night-20261123t212916-0006"
    lines = cycle_text(snapshot(cycle=made.cycle(id=name, phase="training", seconds={"prepare": 1.0})), (), 78)
    assert lines.plain.split("\n")[0].startswith(f"{name}  ")
    assert "decision" in lines.plain.split("\n")[0]


def test_a_step_s_success_has_the_interval_that_the_step_says() -> None:
    steps = (
        {"step": 0.0, "success": 0.5, "success_low": 0.2, "success_high": 0.8, "rollouts_shared": 8.0},
        {"step": 1.0, "success": 1.0, "rollouts_moved": 3.0},
    )
    assert bounds_of(CycleCurves(cycle="night", steps=steps)) == [[(0.0, 0.2)], [(0.0, 0.8)]]
    assert bounds_of(None) == bounds_of(CycleCurves(cycle="night", steps=steps[1:])) == []


def test_success_by_taskset_has_intervals_that_know_that_rollouts_of_one_task_are_alike() -> None:
    """Ten tasks of eight rollouts, of which five are always passed: ten things are known, not eighty."""
    alike = PassCount(
        cycle="night", purpose=Purpose.TRAIN, family="digits", level=0, rollouts=80, passed=40, broken=0,
        questions=10, passed_squared=5 * 64, both=5 * 64, rollouts_squared=10 * 64,
    )  # fmt: skip
    low, high = rates_of([alike])["digits"].interval
    assert low < wilson(5, 10)[0] < wilson(40, 80)[0]
    assert f"[{100 * low:.1f} %, {100 * high:.1f} %] of 80, 10 tasks" in tasksets_text([alike]).plain


def test_a_small_rate_keeps_a_tenth() -> None:
    assert [rate(one) for one in (0.44, 9.96, 12.4, 9339.0)] == ["0.4", "10.0", "12", "9,339"]


@given(st.integers(1, 40), st.floats(0.0, 1e9), st.sampled_from([None, 1.0]))
def test_ticks_are_the_figures_of_their_rows_and_reach_the_highest_point(
    rows: int, most: float, high: float | None
) -> None:
    heights = heights_of(rows, most, high)
    assert heights[0] == 0
    assert heights[-1] == (high or pytest.approx(max(most, heights[-1])))
    places = [(rows - 1) * height / heights[-1] for height in heights]
    assert all(abs(place - round(place)) < 1e-6 for place in places)
    if rows > 1:
        assert len({round(place) for place in places}) == len(heights) >= 2


@pytest.mark.parametrize(
    ("rows", "most", "high", "said"),
    [
        (5, 0.6, 1.0, ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        (6, 0.6, 1.0, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (5, 0.302, None, ["0.00", "0.08", "0.16", "0.24", "0.32"]),
        (5, 0.0, None, ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        (6, 9_100.0, None, ["0", "2,000", "4,000", "6,000", "8,000", "10,000"]),
    ],
)
def test_a_tick_says_its_figure(rows: int, most: float, high: float | None, said: list[str]) -> None:
    assert labels_of(heights_of(rows, most, high)) == said


@pytest.mark.parametrize(
    ("fields", "in_row", "in_detail"),
    [
        ({}, "✓ yes", "yes, before a night"),
        ({"task_of": "own/sessions"}, "is one of own/sessions", "is one of own/sessions"),
        ({"no_task": "refused: too near"}, "refused: too near", "refused: too near"),
    ],
)
def test_the_gateway_says_what_became_of_a_session(fields: dict[str, str], in_row: str, in_detail: str) -> None:
    known = {"id": f"gs-{'a' * 16}", "token": "agent", "updated": "2026-01-01T00:00:00", "expires": "2026-02-01T00:00"}
    one = SessionRow.model_validate(
        {**known, "turns": 1, "tokens": 2, "redacted": False, "verdict": "pass", "no_task": "", **fields}
    )
    assert gateway.row(one).cells[-1].plain == in_row
    assert in_detail in gateway.detail(one).plain


def test_the_map_says_that_there_is_nothing_when_all_is_counted_and_not_before() -> None:
    assert map_text([], ["night-1"], waits=True).plain == ""
    assert map_text([], ["night-1"]).plain.startswith("No rollout of a training yet. ")


def test_a_time_to_come_has_its_day_where_it_is_not_within_one() -> None:
    now = datetime.fromisoformat("2026-01-02T12:00:00+00:00")
    assert due("2026-01-03T01:00:00.000+00:00", now) == "01:00"
    assert due("2026-01-05T01:00:00.000+00:00", now) == "01-05 01:00"


def test_a_gpu_that_says_no_load_is_not_said_to_be_idle() -> None:
    gpus = (GpuUse(name="H100", busy=None, used_bytes=2 << 30, total_bytes=80 << 30),)
    machine = MachineView(
        cores=2, cpu=1.0, load=1.0, memory_total=1, memory_available=1, disk_total=1, disk_free=1, gpus=gpus
    )
    (line,) = (one for one in machine_text(machine).plain.splitlines() if one.startswith("gpu"))
    assert "load unknown, 2.0 GiB of 80.0 GiB" in line
    assert "0 %" not in line


def test_a_taskset_that_was_lost_whole_has_no_share() -> None:
    def item(family: str, passed: bool | None) -> ItemResult:
        return ItemResult(task=f"{family}-1", family=family, passed=passed, calls=1, failed_calls=0)

    pairs = [ItemPair(item("gcd", True), item("gcd", False)), ItemPair(item("lost", None), item("lost", True))]
    said = summary_text(pairs).plain.splitlines()
    assert said[0] == "2 items: 1 gained, 1 broken"
    assert "0 →    1 of 1     100.0 %" in said[1]
    assert said[2].split() == ["lost", "no", "item", "that", "both", "answered"]


def held_out(before: int, after: int, interval: tuple[float, float], number: int = 0) -> HeldOutNight:
    return HeldOutNight(
        cycle=f"night-{number}",
        at=f"2026-11-{number + 1:02}T02:00:00",
        candidate="b" * 64,
        champion="a" * 64,
        items=96,
        before=before,
        after=after,
        change=100 * (after - before) / 96,
        interval=interval,
        decision=(DecisionOutcome.PROMOTE, DecisionOutcome.HOLD, DecisionOutcome.REJECT, None)[number % 4],
    )


@table(
    "interval, decision, said",
    [
        ((11.5, 22.9), DecisionOutcome.HOLD, "better: +17.2 points [+11.5, +22.9] on 96 questions"),
        ((-9.0, -1.0), DecisionOutcome.HOLD, "worse: +17.2 points [-9.0, -1.0] on 96 questions"),
        ((-7.0, 11.0), DecisionOutcome.HOLD, "not better: +17.2 points [-7.0, +11.0] on 96 questions; wait"),
        ((-7.0, 11.0), None, "not better: +17.2 points [-7.0, +11.0] on 96 questions; wait"),
        ((-7.0, 11.0), DecisionOutcome.REJECT, "not better: +17.2 points [-7.0, +11.0] on 96 questions"),
    ],
)
def test_a_night_says_if_its_candidate_is_better(
    interval: tuple[float, float], decision: DecisionOutcome | None, said: str
) -> None:
    night = held_out(40, 57, interval).model_copy(update={"change": 17.2, "decision": decision})
    assert night.summary == said


@given(
    st.lists(st.tuples(st.integers(0, 96), st.integers(0, 96)), min_size=1, max_size=70),
    st.integers(40, 200),
    st.integers(2, 12),
)
def test_the_curve_of_nights_has_its_axes_and_keeps_its_room(
    passed: list[tuple[int, int]], width: int, rows: int
) -> None:
    nights = [held_out(*one, (-1.0, 1.0), number % 28) for number, one in enumerate(passed)]
    lines = night_curve(nights, width, rows).plain.split("\n")
    assert len(lines) == rows + 3
    assert max(map(cell_len, lines)) <= width
    high, low = (int(lines[place].partition("%")[0]) for place in (1, rows))
    assert 0 <= low < high <= 100
    assert sum(line.count("●") for line in lines) == min(len(nights), (width - 8) // 4)
    assert nights[-1].at[5:10] in lines[-1]


def test_without_a_night_the_curve_says_what_will_stand_there() -> None:
    assert "`assay cycle start` begins a night" in night_curve([], 76, 4).plain
    assert night_curve(None, 76, 4).plain == "reading …"


def test_now_names_what_is_wrong_and_what_waits_with_the_key() -> None:
    assert wrong_now(snapshot(), None, ()) == []
    assert waits_for_you(snapshot(), 0) == []
    busy = snapshot(
        worker=WorkerStatus(state="backing_off", failures=2, last_failure="killed"),
        aliases={"candidate": "b" * 64},
        candidate_waits_for=YOURS,
        jobs={"set_aside": 1},
        nights="nights are paused until a person resumes",
    )
    machine = MachineView(
        cores=2, cpu=1.0, load=1.0, memory_total=100, memory_available=50, disk_total=100, disk_free=1
    )
    news = numbered(event("warning", -100.0), event("warning"), event("failure"))
    assert wrong_now(busy, machine, news) == [
        "the worker failed 2 times: killed",
        "disk 99 % full",
        "failure: failure and 1 more, 9 e lists them",
    ]
    assert waits_for_you(busy, 1) == [
        "candidate bbbbbbbb waits: a approves, r rejects, 5 shows why",
        "7: 1 check waits for your validation",
        "6: 1 parked job, `assay jobs resume`",
        "nights are paused until a person resumes",
    ]
    assert YOURS in waits_for_you(busy, 0, read_only=True)[0]


@given(st.lists(st.text(max_size=200), max_size=5), st.integers(40, 160))
def test_an_answer_takes_two_lines_of_the_width(answers: list[str], width: int) -> None:
    lines = answer_text("wrong", answers, "nothing", "bad", width).plain.split("\n")
    assert len(lines) <= 2
    assert max(len(line) for line in lines) <= width


def test_steps_do_not_push_out_the_decision_and_jobs() -> None:
    before = [event("phase"), *(event("step", step=float(n)) for n in range(300)), event("decision"), event("job")]
    after = [event("phase"), *(event("selftest") for _ in range(490)), event("step", step=1.0)]
    listed = [one.kind for _, one in without_repeats(numbered(*before, *after)[::-1])]
    assert listed == ["step", "selftest", "phase", "job", "decision", "step", "phase"]


def test_the_bar_says_how_long_the_steps_to_go_take() -> None:
    steps = [event("step", minutes=-8.0 + n, step=float(n), steps=10.0) for n in range(5)]
    assert cycle_text(snapshot(), numbered(*steps), 100).plain.split("\n")[1].endswith("  50 %  about 5 min left")
    odd = steps[-1].model_copy(update={"created": f"{made.at(0)[:10]}T99"})
    assert "left" not in cycle_text(snapshot(), numbered(*steps, odd), 100).plain


def test_a_sparkline_of_a_night_has_its_axis() -> None:
    steps = [event("step", step=float(n), steps=60.0, success=0.5 + n / 100) for n in range(21)]
    said = cycle_text(snapshot(step_metrics={"success": 0.7}), numbered(*steps), 120).plain.split("\n")[2]
    assert said.endswith(" 50-70 %")
    assert "steps 1-21 ▁" in said


def test_a_borders_title_has_no_markup_whatever_a_name_says() -> None:
    assert markup_safe("[bold red]x[/]\x1b[2J") == "(bold red]x(/]/x1b(2J"


def test_jobs_that_are_set_aside_stand_on_now_with_what_to_do() -> None:
    said = queue_text(snapshot(jobs={"set_aside": 2, "solved": 1}), None).plain.splitlines()
    assert said[:3] == ["jobs      none waiting", "ended     1 solved", "set aside 2: `assay jobs resume`"]


def test_history_says_what_each_promotion_lost_to_the_best_model_before() -> None:
    families = (
        TasksetChange(family="gcd", items=120, gained=4, lost=9, anchor="b" * 64, anchor_items=120, anchor_lost=10),
        TasksetChange(family="lcm", items=80, gained=9, lost=1, anchor="a" * 64, anchor_items=80, anchor_gained=8),
        TasksetChange(family="primes", items=0, gained=0, lost=0, anchor="b" * 64),
    )
    view = PromotionView(
        at="2026-11-02T08:00",
        candidate="c" * 64,
        champion="a" * 64,
        cycle="night-1",
        evaluation="e",
        reason="all 20 gates passed",
        taken_back="it was worse",
        families=families,
    )
    text = history_text([view]).plain
    assert "2026-11-02  cccccccc after aaaaaaaa: all 20 gates passed" in text
    assert "taken back: it was worse" in text
    assert "-8.3 to the best before, bbbbbbbb" in text
    assert "+10.0 to the best before, the champion" in text
    assert "not asked to the best before, bbbbbbbb" not in text
    assert "not asked beside the best before, bbbbbbbb" in text
    assert history_text([]).plain == "No promotion yet."
