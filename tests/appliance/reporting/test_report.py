"""A report says what its records say, in text, Markdown, one page and pictures; what a model wrote stays text."""

from __future__ import annotations

import hashlib
import re
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from good_evidence import good_measurements
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS

from appliance.cli.models.report import events_between, newest, write_report
from appliance.client.messages import CycleDetail, RolloutDetail, RolloutView, TurnText
from appliance.client.nights import HeldOutNight, PromotionView, TasksetChange
from appliance.daemon.governance.backtest import promotions
from appliance.errors import UsageError
from appliance.records.cycles import Cycle, CycleState, Event
from appliance.records.evaluations import Evaluation, ItemResult, ModelResults
from appliance.records.rollouts import Purpose, Role, RolloutEnd
from appliance.reporting.as_page import as_page, history_page
from appliance.reporting.as_text import as_figures, as_markdown, as_text
from appliance.reporting.drawing import Bar, Series, bars, curves, history_pictures, report_pictures
from appliance.reporting.night_report import MOST_HAPPENED, ChangedTask, changed_items, night_report
from appliance.text.html_page import _STYLE, table
from policies.contract.decision import Decision, DecisionOutcome, GateFinding, GateOutcome
from policies.policy import load
from runtime.sandbox import Usage
from verifiers.contract.verdict import Outcome, Verdict

HOSTILE = '</pre><script>alert(1)</script><img src="http://evil/x">\x1b[2J\u202e|**x**'
AT = "2026-11-24T01:00:00+00:00"


def results(weights: str, passed: str, temperature: float = 1.0) -> ModelResults:
    """`passed` has a letter for each question: y, n, or x for one that was lost."""
    items = tuple(
        ItemResult(
            task=f"q{n}",
            family=("gcd", "tables")[n % 2],
            passed={"y": True, "n": False}.get(one),
            calls=1,
            failed_calls=0,
        )
        for n, one in enumerate(passed)
    )
    return ModelResults(weights=weights, temperature=temperature, items=items, tokens=10, seconds=1.0)


EVALUATION = Evaluation(
    id="night-1.evaluation",
    cycle="night-1",
    sealed_set="s",
    champion=results("a" * 64, "ynnnxy"),
    candidate=results("b" * 64, "yyynyn"),
    champion_greedy=results("a" * 64, "ynnnxy", 0.0),
    candidate_greedy=results("b" * 64, "yyynyn", 0.0),
    created=AT,
)
FINDING = GateFinding(gate="improvement", outcome=GateOutcome.PASSED, figure=12.0, reason=HOSTILE)
DECISION = Decision(
    id="night-1.decision",
    candidate="b" * 64,
    champion="a" * 64,
    evaluation=EVALUATION.id,
    policy="p",
    outcome=DecisionOutcome.PROMOTE,
    findings=(FINDING,),
    reason=HOSTILE,
    would_change="",
    made_at=AT,
)
CYCLE = Cycle(
    id="night-1",
    kind="night",
    seed=0,
    plan={},
    phase="done",
    state=CycleState.DONE,
    created=AT,
    updated=AT,
    seconds={"training": 600.0, "evaluation": 60.0},
)
STEPS = tuple(
    {
        "step": float(n),
        "success": n / 10,
        "tool_errors_in_correct": 0.1,
        "tokens": 320.0,
        "learning_entropy": 1.0 / (n + 1),
    }
    for n in range(5)
)


NIGHTS = tuple(
    HeldOutNight(
        cycle=f"night-{number}",
        at=AT.replace("24", f"{23 + number}"),
        candidate="b" * 64,
        champion="a" * 64,
        items=5,
        before=2,
        after=3,
        change=20.0,
        interval=(-37.0, 66.0),
        decision=None,
    )
    for number in (0, 1, 2)
)


def spoken(passed: bool) -> RolloutDetail:
    outcome = Outcome.PASS if passed else Outcome.FAIL
    view = RolloutView(
        id="r",
        cycle="night-1",
        step=0,
        task="q1",
        question=f"what is asked? {HOSTILE}",
        sample=0,
        purpose=Purpose.EVALUATION,
        family="tables",
        weights="a" * 64,
        ended=RolloutEnd.ANSWERED,
        answer=HOSTILE,
        answers=1,
        is_probe=False,
        calls=(),
        turns=1,
        tokens=3,
        seconds=1.0,
        usage=Usage(),
        branch_of=None,
        verdict=Verdict(outcome=outcome, score=float(passed), reason=HOSTILE, verifier="v", version="1", seconds=0.0),
    )
    return RolloutDetail(rollout=view, turns=(TurnText(role=Role.ASSISTANT, sampled=True, text=HOSTILE),))


@pytest.fixture(scope="module")
def report():
    detail = CycleDetail(
        cycle=CYCLE,
        rollouts={"train": 80, "evaluation": 24},
        steps=STEPS,
        checkpoints=(),
        evaluations=(EVALUATION,),
        decisions=(DECISION,),
    )
    items = changed_items(EVALUATION)
    changed = [ChangedTask(one.task, one.family, one.gained, spoken(one.lost), spoken(one.gained)) for one in items]
    steps = [one | {"held_out_success": 0.25} for one in STEPS]
    return night_report(detail, steps, changed, (), NIGHTS)


def test_questions_that_were_lost_on_either_side_count_for_neither(report) -> None:
    everything = report.families[0]
    assert (everything.name, everything.items, everything.before, everything.after) == ("all", 5, 2, 3)
    assert (everything.gained, everything.lost) == (2, 1)
    assert everything.change == pytest.approx(20.0)
    low, high = everything.interval
    assert low < 20.0 < high
    assert [one.name for one in report.families] == ["all", "gcd", "tables"]
    assert [(one.task, one.gained) for one in report.changed] == [("q1", True), ("q2", True), ("q5", False)]


def test_curves_have_the_figures_of_the_steps(report) -> None:
    assert report.curves["success"][-1] == (4.0, 0.4)
    assert report.curves["entropy"][0] == (0.0, 1.0)
    assert report.curves["tokens of a rollout"][0] == (0.0, 20.0)
    assert as_figures(report).families[0].change_points == pytest.approx(20.0)


class References(HTMLParser):
    """Everything in a page that a browser would load or run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs if name in ("src", "href", "xlink:href", "action") or name.startswith("on")]
        if tag in ("script", "img", "link", "iframe", "object", "a", "form") or names:
            self.found.append(tag)


def test_tokens_of_a_rollout_are_those_of_the_steps_own_rollouts() -> None:
    """A step with refilled groups has more rollouts than another: an average over all steps would say 300 and 100."""
    steps = ({"step": 0.0, "tokens": 3000.0, "rollouts": 15.0}, {"step": 1.0, "tokens": 1000.0, "rollouts": 5.0})
    detail = CycleDetail(cycle=CYCLE, rollouts={"train": 20}, steps=steps, checkpoints=(), evaluations=(), decisions=())
    found = night_report(detail, steps)
    assert found.curves["tokens of a rollout"] == ((0.0, 200.0), (1.0, 200.0))


def test_the_page_refers_to_nothing_and_shows_hostile_text_as_text(report) -> None:
    page = as_page(report)
    assert References(page).found == []
    assert "default-src &#x27;none&#x27;" in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<svg") == 6
    assert ">tool errors</text>" in page  # longer, it would end at the picture's edge
    assert "the champion failed" in page
    assert not re.search(r"url\(|@import", page)
    assert "what is asked? &lt;/pre&gt;" in page


def test_text_and_markdown_cannot_steer_a_terminal_or_a_reader(report) -> None:
    for written in (as_text(report), as_markdown(report, ["success.png"])):
        assert "\x1b" not in written
        assert "\u202e" not in written
        assert "promote" in written
        assert "+20.0" in written
    assert "<script>" not in as_markdown(report)
    for written in (as_text(report), as_markdown(report).replace("\\", "")):
        assert written.count("asked: what is asked? </pre>") == 3
        assert written.count("wrote: </pre>") == 6
    for written in (as_text(report), as_markdown(report), as_page(report)):
        assert "the decision also counts earlier nights" in written, "the figures of the table are tonight's"
    assert "![success\\.png](success.png)" in as_markdown(report, ["success.png"])


def test_the_decision_shown_is_the_newest_on_record_whatever_the_clock_said_then() -> None:
    """The clock was set back between the two: the record's order is what counts, as it does for what is in force."""
    held = DECISION.model_copy(
        update={"id": "again", "outcome": DecisionOutcome.HOLD, "made_at": "2026-11-23T23:00:00+00:00"}
    )
    detail = CycleDetail(
        cycle=CYCLE, rollouts={}, steps=(), checkpoints=(), evaluations=(EVALUATION,), decisions=(held, DECISION)
    )
    assert night_report(detail, ()).decision == held


def test_a_report_needs_nothing_to_write_its_pictures(report, tmp_path) -> None:
    written = [file.name for file in write_report(report, tmp_path / "out")]
    drawn = [f"{name}.svg" for name in ("nights", "success", "entropy", "lengths", "time", "families")]
    assert written == ["report.html", "report.md", *drawn]
    for name in drawn:
        assert fromstring((tmp_path / "out" / name).read_text()).tag.endswith("svg")
        assert f"({name})" in (tmp_path / "out" / "report.md").read_text()


def test_a_report_opens_with_short_sentences_and_says_if_the_candidate_is_better(report) -> None:
    held = DECISION.model_copy(update={"outcome": DecisionOutcome.HOLD, "reason": "and more " * 90})
    detail = CycleDetail(
        cycle=CYCLE, rollouts={}, steps=(), checkpoints=(), evaluations=(EVALUATION,), decisions=(held,)
    )
    said = night_report(detail, ()).headline
    assert re.fullmatch(
        r"night-1 is done\. Not better: \+20\.0 points \[-\d+\.\d, \+\d+\.\d\] on 5 questions; wait\. Decision: hold\.",
        said,
    )
    assert "wait" not in report.headline


def test_held_out_success_by_night_ends_with_the_reports_own_night(report) -> None:
    assert [one.cycle for one in report.nights] == ["night-0", "night-1"]
    assert [one.cycle for one in as_figures(report).nights] == ["night-0", "night-1"]
    for form in (as_text, as_markdown, as_page):
        written = form(report).replace("\\", "")
        assert "Success on held-out questions by night" in written
        assert "candidate 60 % [23, 88]" in written
        assert "+20.0 [-37.0, +66.0]" in written
        assert "2026-11-25" not in written
    assert report.curves["held-out success"][0] == (0.0, 0.25)
    assert "0 to 0.4, last 0.4, steps 0 to 4" in as_text(report)


def test_a_table_breaks_words_only_where_no_page_has_room() -> None:
    page = table(["a", "b"], [["non_regression/divisors", "b" * 64]])
    assert "<td>non_regression/divisors</td>" in page
    assert f'<td class="long">{"b" * 64}</td>' in page
    assert "anywhere" not in _STYLE.replace(".long{overflow-wrap:anywhere", "").partition("table{")[2]


def test_a_cycle_without_steps_or_evaluation_has_a_report_too() -> None:
    bare = CYCLE.model_copy(update={"state": CycleState.FAILED, "failure": HOSTILE, "seconds": {}})
    detail = CycleDetail(cycle=bare, rollouts={}, steps=(), checkpoints=(), evaluations=(), decisions=())
    made = night_report(detail, ())
    assert report_pictures(made) == {}
    assert "failed" in as_text(made)
    assert References(as_page(made)).found == []
    for form in (as_text, as_markdown, as_page):
        assert "No candidate was evaluated." in form(made)
    running = detail.model_copy(update={"cycle": CYCLE.model_copy(update={"state": CycleState.RUNNING})})
    assert night_report(running, ()).unmeasured == ""


def test_an_evaluation_that_the_infrastructure_lost_is_said_to_be_lost_and_rollouts_are_counted_in_every_form() -> None:
    lost = EVALUATION.model_copy(update={"candidate": results("b" * 64, "xxxxxx")})
    detail = CycleDetail(
        cycle=CYCLE, rollouts={"evaluation": 1200}, steps=(), checkpoints=(), evaluations=(lost,), decisions=()
    )
    made = night_report(detail, ())
    assert made.families == ()
    for form in (as_text, as_markdown, as_page):
        assert "Both models answered none of 6 questions" in form(made)
        assert "1,200" in form(made)


def test_a_history_without_a_promotion_says_so() -> None:
    assert "No model was promoted yet." in history_page([])


FIGURES = st.floats(-1e9, 1e9) | st.just(float("nan")) | st.just(float("inf"))


@settings(max_examples=FROM_STRANGERS)
@given(st.lists(st.tuples(st.floats(0, 1e4), FIGURES), max_size=20), st.text(max_size=60))
def test_no_figures_or_names_break_a_chart(points, name) -> None:
    for picture in (curves(name, [Series(name, tuple(points))]), bars(name, [Bar(name, 0.0, name, -1.0, 1.0)])):
        drawn = picture.svg()
        assert "nan" not in re.sub(r"<t[^>]*>[^<]*</t[a-z]*>", "", drawn)
        assert References(drawn).found == []


def test_a_promotion_shows_what_it_gained_and_forgot_and_that_it_was_taken_back() -> None:
    made = "2026-11-23T01:00:00+00:00"
    known = [item for item in EVALUATION.champion.items if item.passed is not None]
    fresh = [item.model_copy(update={"task": f"p{n}"}) for n, item in enumerate(known)]
    asked = hashlib.sha256("\n".join(["q0", *(item.task for item in fresh)]).encode()).hexdigest()
    sides = {
        name: getattr(EVALUATION, name).model_copy(update={"items": (getattr(EVALUATION, name).items[0], *fresh)})
        for name in ("champion", "candidate")
    }
    more = {"id": "night-0.evaluation", "created": made, "sealed_set": asked, "measurements": good_measurements(made)}
    earlier = EVALUATION.model_copy(update={**more, **sides})
    ledger: Any = SimpleNamespace(
        decisions=lambda limit: [DECISION],
        evaluation={EVALUATION.id: EVALUATION}.get,
        evaluations=lambda candidate, limit: [EVALUATION],
    )
    (found,) = promotions(ledger, lambda digest: load(), limit=10)
    ledger.evaluations = lambda candidate, limit: [EVALUATION, earlier]
    (longer,) = promotions(ledger, lambda digest: load(), limit=10)
    assert (found.nights, longer.nights) == (1, 2)
    assert sum(one.items for one in longer.families) == sum(one.items for one in found.families) + 5
    bad = earlier.measurements.selftest.model_copy(update={"accepted": 3})
    unsound = earlier.measurements.model_copy(update={"selftest": bad})
    ledger.evaluations = lambda candidate, limit: [EVALUATION, earlier.model_copy(update={"measurements": unsound})]
    assert promotions(ledger, lambda digest: load(), limit=10) == [found], "the decision does not count that night"
    assert found.families == (
        TasksetChange(family="gcd", items=2, gained=1, lost=0),
        TasksetChange(family="tables", items=3, gained=1, lost=1),
    )
    page = history_page([found])
    assert References(page).found == []
    assert "<svg" in page
    assert list(history_pictures([found])) == [f"001-{'b' * 12}"]
    back = PromotionView.model_validate({**found.model_dump(), "taken_back": HOSTILE})
    assert "taken back: &lt;/pre&gt;" in history_page([back])


def test_where_it_ran_and_what_was_replaced_is_told_and_the_rest_of_many_is_counted() -> None:
    detail = CycleDetail(cycle=CYCLE, rollouts={}, steps=(), checkpoints=(), evaluations=(), decisions=())
    lost = [Event(kind="worker", text=f"killed {n}: {HOSTILE}", created=AT) for n in range(MOST_HAPPENED + 2)]
    events = [Event(kind="step", text="a step", created=AT), Event(kind="placed", text="on host-0", created=AT), *lost]
    made = night_report(detail, (), (), events)
    for form in (as_text, as_markdown, as_page):
        written = form(made).replace("\\", "")
        assert all(text in written for text in ("01:00", "on host-0", "killed 0", "and 3 more"))
        assert "a step" not in written
        assert "\x1b" not in written
    assert "<script>" not in as_page(made)
    assert [one.text for one in as_figures(made).happened][:1] == ["on host-0"]
    assert "replaced processes" not in as_text(night_report(detail, ()))


@pytest.mark.parametrize(
    ("states", "place", "said"),
    [
        ("running failed cancelled done done", 3, "n1 is failed, n2 is cancelled"),
        ("set_aside done", 1, "n0 is set_aside"),
        ("running done", 1, ""),
        ("running cancelled", 1, ""),
        ("running", 0, ""),
    ],
)
def test_the_report_of_the_last_night_is_of_one_with_a_result(capsys, states: str, place: int, said: str) -> None:
    cycles = [
        CYCLE.model_copy(update={"id": f"n{n}", "state": CycleState(state)}) for n, state in enumerate(states.split())
    ]
    api: Any = SimpleNamespace(cycles=lambda limit: cycles)
    assert newest(api) == f"n{place}"
    err = capsys.readouterr().err
    assert err == (f"newer ones have no result: {said}\n" if said else "")


def test_a_report_is_not_written_over_another_one(report, tmp_path) -> None:
    written = write_report(report, tmp_path / "morning")
    before = {file: file.read_bytes() for file in written}
    other = night_report(
        CycleDetail.model_construct(cycle=CYCLE, rollouts={}, steps=(), evaluations=(), decisions=()), ()
    )
    with pytest.raises(UsageError, match="already exists"):
        write_report(other, tmp_path / "morning")
    assert {file: file.read_bytes() for file in written} == before


class Numbered:
    """An API with that many events, a second apart."""

    def __init__(self, count: int) -> None:
        self.asked, times = 0, (f"2026-11-24T00:{n // 60:02d}:{n % 60:02d}+00:00" for n in range(count))
        self.all = [
            SimpleNamespace(number=number, event=Event(kind="worker", text=str(number), created=created))
            for number, created in enumerate(times, 1)
        ]

    def status(self) -> Any:
        return SimpleNamespace(last_event=len(self.all))

    def events(self, *, after: int, limit: int) -> list[Any]:
        self.asked += 1
        return self.all[after : after + limit]


@pytest.mark.parametrize(("begun", "ended"), [(0, 10), (1700, 1800), (3500, 3599), (5000, 5001)])
def test_the_events_of_a_cycle_are_found_among_many(begun: int, ended: int) -> None:
    api: Any = Numbered(3600)
    first, last = (f"2026-11-24T{n // 3600:02d}:{n // 60 % 60:02d}:{n % 60:02d}+00:00" for n in (begun, ended))
    found = events_between(api, CYCLE.model_copy(update={"created": first, "updated": last}))
    assert [int(one.text) for one in found] == [n + 1 for n in range(begun, ended + 1) if n < 3600]
    assert api.asked < 20
