"""A line of `assay logs` and `assay cycle watch` says how a step went, and fits a line."""

from __future__ import annotations

from appliance.cli.show.logs import event_line
from appliance.records.cycles import Event

AT = "2026-01-01T00:00:00.000+00:00"


def test_a_step_is_told_by_a_few_of_its_figures() -> None:
    figures = {f"learning_{number}": 0.1 for number in range(40)}
    figures |= {
        "success": 0.1796,
        "tokens": 6646,
        "groups_with_signal": 6,
        "learning_seconds": 5.27,
        "step": 0,
        "steps": 24,
    }
    line = event_line(Event(kind="step", text="step 1 of 24", figures=figures, created=AT))
    assert line == (
        "2026-01-01T00:00:00  step: step 1 of 24 (success 0.18, 6 groups with signal, 6,646 tokens, learning 5 s)"
    )


def test_what_the_text_says_is_not_said_again() -> None:
    event = Event(kind="evaluation", text="21 of 240 right", figures={"step": 1, "steps": 4}, created=AT)
    assert event_line(event) == "2026-01-01T00:00:00  evaluation: 21 of 240 right"


def test_other_figures_are_all_there() -> None:
    event = Event(kind="watch", text="held-out success 0.094", figures={"step": 24, "items": 96}, created=AT)
    assert event_line(event) == "2026-01-01T00:00:00  watch: held-out success 0.094 (items 96)"


def test_a_look_at_held_out_questions_says_its_figure_once() -> None:
    figures = {"step": 24, "steps": 70, "success": 0.760417}
    event = Event(kind="watch", text="held-out success 0.760", figures=figures, created=AT)
    assert event_line(event) == "2026-01-01T00:00:00  watch: held-out success 0.760"
