"""Signs for outcomes: each has a word beside its colour."""

from __future__ import annotations

from rich.text import Text

from appliance.client import DecisionOutcome, GateOutcome, JobState, Outcome
from tui.widgets.text import BAD, CARE, DIM, GOOD

VERDICTS = {
    Outcome.PASS: ("✓ pass", GOOD),
    Outcome.FAIL: ("✗ fail", BAD),
    Outcome.HACK_SUSPECTED: ("! hack?", CARE),
    Outcome.INFRA_ERROR: ("~ infra", DIM),
}
DECISIONS = {
    DecisionOutcome.PROMOTE: ("promote", GOOD),
    DecisionOutcome.HOLD: ("hold", CARE),
    DecisionOutcome.REJECT: ("reject", BAD),
    DecisionOutcome.QUARANTINE: ("quarantine", BAD),
}
GATES = {GateOutcome.PASSED: ("✓", GOOD), GateOutcome.FAILED: ("✗", BAD), GateOutcome.UNDECIDED: ("?", CARE)}
JOB_STATES = {
    JobState.QUEUED: ("queued", DIM),
    JobState.RUNNING: ("running", CARE),
    JobState.SOLVED: ("✓ solved", GOOD),
    JobState.UNSOLVED: ("✗ unsolved", BAD),
    JobState.FAILED: ("~ failed", DIM),
    JobState.CANCELLED: ("cancelled", DIM),
    JobState.SET_ASIDE: ("~ set aside", BAD),
}


def signed(sign: tuple[str, str]) -> Text:
    """Returns a status sign as text in its colour."""
    return Text().append(*sign)
