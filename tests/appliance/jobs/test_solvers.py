"""The pure parts of the solvers: what they read out of a question, and what they compute where they are sent."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from itertools import islice
from typing import Any

import pytest

from appliance.jobs.solvers.guest import column_statistics, program_search
from appliance.jobs.solvers.programs import ProgramSolver, examples
from appliance.jobs.solvers.schema import Open, instance
from appliance.jobs.solvers.solver import Proposal, Tools
from appliance.jobs.trying import try_solvers
from appliance.records import Job, JobState
from verifiers.programs.spec import Example
from verifiers.proposals.found import Found
from verifiers.spec import ProgramSpec, SmtSpec, Spec
from verifiers.verdict import Ground, Outcome, Verdict

AT = "2026-01-01T00:00:00.000+00:00"
ROWS = [
    {"region": "north", "amount": "10.5", "item": "tea"},
    {"region": "south", "amount": "20", "item": "tea"},
    {"region": "north", "amount": "2", "item": "salt"},
]


def searched(shown: list[list[str]], most: int = 40) -> Iterator[str]:
    """The first expressions that give what is shown, as they are found."""
    program_search.begin("f", "", shown, 60.0, 12)
    return (text for text in islice(program_search.LOOKING[0].texts, most) if text)


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        ([["2, 3", "13"], ["1, 1", "2"], ["0, 5", "25"]], "(a * a) + (b * b)"),
        ([["[1, 2, 3, 4, 5, 6]", "12"], ["[7, 8]", "8"], ["[1]", "0"]], "sum([x for x in xs if (x % 2) == 0])"),
        ([["'a b c'", "'c b a'"], ["'hi you'", "'you hi'"]], "' '.join(s.split()[::-1])"),
    ],
)
def test_small_programs_are_found_from_examples(shown: list[list[str]], wanted: str) -> None:
    assert wanted in searched(shown)


def test_what_is_found_is_right_on_what_was_shown_and_runs_as_it_is_written() -> None:
    shown = [["[3, 1, 2], 2", "[3, 2]"], ["[5], 9", "[]"], ["[4, 7, 1], 4", "[4, 7]"]]
    for text in searched(shown, 2):
        made: dict[str, Any] = {}
        exec(program_search.program("f", ["xs", "a"], text), made)
        assert [made["f"]([3, 1, 2], 2), made["f"]([5], 9), made["f"]([4, 7, 1], 4)] == [[3, 2], [], [4, 7]], text


def test_the_question_says_which_of_several_is_meant() -> None:
    hinted = program_search.hints("The sum of the even numbers")
    texts = ["sum([x for x in xs if x <= 3])", "sum([x for x in xs if (x % 2) == 0])"]
    assert min(texts, key=lambda text: program_search.oddity(text, ["xs"], hinted)) == texts[1]


def test_examples_that_are_no_plain_values_are_told() -> None:
    assert "plain values" in program_search.begin("f", "", [["open('x')", "1"]], 1.0, 3)["note"]
    assert "same arguments" in program_search.begin("f", "", [["1", "1"], ["1, 2", "1"]], 1.0, 3)["note"]


def job(question: str, *, visible: bool) -> Job:
    example = Example(arguments="2, 3", expected="13", visible=visible)
    spec = ProgramSpec(function="f", examples=(example,))
    return Job(id="j", question=question, spec=spec, state=JobState.QUEUED, created=AT, updated=AT)


def test_hidden_examples_are_never_searched_from() -> None:
    assert examples(job("Write f.", visible=True)) == [["2, 3", "13"]]
    assert examples(job("Write f.", visible=False)) == []
    assert not ProgramSolver.takes(job("Write f.", visible=False))


def test_examples_in_the_words_of_a_question_are_read() -> None:
    asked = "Write f(a, b) with f(1, (2, 3)) == [1, 'x, y'], and `f(0, 5)` returns 25."
    assert examples(job(asked, visible=False)) == [["1, (2, 3)", "[1, 'x, y']"], ["0, 5", "25"]]


@pytest.mark.parametrize(
    ("asked", "figure"),
    [
        ("what is the sum of amount?", "32.5"),
        ("what is the total amount for north?", "12.5"),
        ("the average of the amounts for tea", "15.25"),
        ("which region has the highest amount?", "south"),
        ("how many distinct items are there?", "2"),
        ("how many rows have region north?", "2"),
        ("the median amount", "10.5"),
    ],
)
def test_figures_of_the_columns_that_a_question_names(asked: str, figure: str) -> None:
    assert next(column_statistics.figures(ROWS, asked)) == figure


def test_a_question_that_names_no_figure_has_none() -> None:
    assert list(column_statistics.figures(ROWS, "what do you think of the amounts?")) == []


def test_a_schema_is_filled_from_itself_and_the_question_and_from_nothing_else() -> None:
    schema = {
        "type": "object",
        "required": ["kind", "year", "tags"],
        "properties": {
            "kind": {"const": "person"},
            "year": {"type": "integer"},
            "tags": {"type": "array", "prefixItems": [{"enum": ["a"]}]},
        },
    }
    assert instance(schema, "year is 1815") == {"kind": "person", "year": 1815, "tags": ["a"]}
    with pytest.raises(Open, match="year"):
        instance(schema, "no such thing")
    with pytest.raises(Open, match="year"):
        instance(schema, "year = unknown")


class OnlyWord:
    """A solver of a claim of which one thing only can be said."""

    name, at_once = "prover", 1

    def proposals(self, job: Job, tools: Tools, seconds: float) -> Generator[Proposal, None, None]:
        tools.complete = True
        yield Proposal("entailed", self.name)


class Decided:
    def __init__(self, ground: Ground) -> None:
        self.verdict = Verdict(
            outcome=Outcome.FAIL, score=0.0, reason="so", verifier="smt", version="2", seconds=1.0, ground=ground
        )

    def check_many(self, pairs: Sequence[tuple[Spec, str]]) -> list[Verdict]:
        return [self.verdict for _ in pairs]

    def propose(self, spec: Spec, way: str, question: str, seconds: float) -> Found:
        raise AssertionError("this solver asks for nothing")


@pytest.mark.parametrize("ground", [Ground.REFUTED, Ground.TIMEOUT, Ground.UNKNOWN, Ground.MEMORY])
def test_the_only_answer_is_called_none_when_it_was_refuted_and_undecided_when_it_was_not(ground: Ground) -> None:
    job = Job(
        id="job-1", question="So?", spec=SmtSpec(claim="(assert (not true))"), attempts=1, seed=0,
        state=JobState.RUNNING, created=AT, updated=AT,
    )  # fmt: skip
    found = try_solvers(
        job,
        [OnlyWord()],
        Decided(ground),
        None,
        {},
        keep_on=lambda: "",
        say=lambda step, tries: None,
        clock=lambda: 0.0,
    )
    shown = "prover: so"
    assert (found.hopeless, found.undecided) == ((shown, "") if ground is Ground.REFUTED else ("", shown))
