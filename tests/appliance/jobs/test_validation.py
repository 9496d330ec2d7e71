"""What a person is shown of a check was said by its verifier, and what it should not accept comes first."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from appliance.jobs.validation import MOST_EXAMPLES, page_of
from appliance.records.jobs import Job, JobFile, JobState
from policies.envelopes import canonical
from policies.statements import Page, ShownExample
from verifiers.answers.examples import number_in
from verifiers.contract.verdict import Ground, Outcome, Verdict
from verifiers.predicate.explain import values_for
from verifiers.predicate.spec import PredicateSpec
from verifiers.programs.spec import ProgramSpec
from verifiers.registry.spec import SPEC, Spec
from verifiers.smt.explain import parts_of, source
from verifiers.smt.language.reader import CLAIM, read
from verifiers.workers.service import VerifierService

AT = "2026-01-02T03:04:05+00:00"
SIX = {"kind": "answer", "notation": "digits", "expected": "6"}
PERSON = {
    "type": "object",
    "required": ["name", "age"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "minLength": 2, "pattern": "^[A-Z]"},
        "age": {"type": "integer", "minimum": 0},
    },
}


@pytest.fixture(scope="module")
def service() -> Iterator[VerifierService]:
    with VerifierService(boxes=None, workers=1, or_process=True) as made:
        yield made


@pytest.fixture
def page(service):
    """The page of a spec, in a process that confines itself; the machine may be busy, so every probe has a minute."""

    def made(answer: str | None = None, *, asked: str = "What is it?", files=(), **fields: Any) -> Page:
        def ask(pairs: Sequence[tuple[Spec, str]], seconds: float) -> list[Verdict]:
            return service.verify_many(pairs, 60.0)

        return page_of(job(asked, files, fields), answer, ask, lambda: 0.0)

    return made


def job(question: str, files: tuple[JobFile, ...], fields: dict[str, Any]) -> Job:
    spec = SPEC.validate_python(fields)
    return Job(id="j", question=question, spec=spec, files=files, state=JobState.QUEUED, created=AT, updated=AT)


def verdicts(page: Page, sort: str) -> dict[str, bool]:
    return {one.text: one.accepted for one in page.examples if one.sort == sort}


def mutants(page: Page) -> dict[str, ShownExample]:
    return {one.what: one for one in page.examples if one.sort == "mutant"}


@pytest.mark.parametrize(
    ("fields", "accepted", "rejected"),
    [
        ({"kind": "answer", "notation": "digits", "expected": "42"}, {"42", "+42"}, {"43", "-42", "420", "42.0"}),
        ({"kind": "exact", "expected": "Yes"}, {"Yes"}, {"yES", "Ye", "Yes."}),
        ({"kind": "answer", "expected": "1/2"}, {"1/2", "0.5", "\\frac{1}{2}"}, {"1.5", "-0.5", "2", "0.6"}),
        ({"kind": "answer", "expected": "1/3", "absolute": "0.001"}, {"1/3", "0.334233"}, {"0.334433", "0.33", "4/3"}),
        ({"kind": "answer", "expected": "5 cm"}, {"5 cm", "5.0 cm"}, {"5", "5 kg", "6 cm"}),
        ({"kind": "answer", "expected": "(1, 2)"}, {"(1, 2)"}, {"(2, 1)", "(1, 2, 917)"}),
        ({"kind": "answer", "expected": "B", "final": "boxed"}, {"\\boxed{B}"}, {"\\boxed{C}"}),
        (
            {"kind": "answer", "notation": "plain", "domain": "complex", "expected": "2*x+2", "variables": ["x"]},
            {"(2*x+2)"},
            {"2*x+2 + 1", "3*x+2"},
        ),
    ],
)
def test_equal_forms_are_accepted_and_neighbours_are_not(page, fields, accepted, rejected) -> None:
    found = page(**fields)
    assert accepted <= {text for text, passed in verdicts(found, "example").items() if passed}
    assert rejected <= {text for text, passed in verdicts(found, "mutant").items() if not passed}
    assert found.first == (f"All {len(mutants(found))} variants that were changed on purpose are rejected",)


def test_what_only_looks_changed_is_an_example(page) -> None:
    assert verdicts(page(kind="answer", expected="\\{-2,2\\}"), "example")["\\{2, -2\\}"]
    close = page(kind="answer", expected="3.14159", absolute="0.0001")
    assert verdicts(close, "example")["3.1416"]
    assert close.first[0].startswith("All ")


def test_roots_are_tried_where_the_domain_has_them(page) -> None:
    fields = {"kind": "predicate", "predicate": "x*x == 2 and x > 0"}
    assert verdicts(page(**fields, domain="real"), "example") == {"sqrt(2)": True}
    assert verdicts(page(**fields, domain="rational"), "example") == {}


def test_values_of_a_predicate_are_gone_through_and_its_domain_is_seen(page) -> None:
    found = page(kind="predicate", predicate="7*x + 3 == 45", domain="integer")
    assert verdicts(found, "example") == {"6": True}
    assert {"5", "7", "1/2", "sqrt(2)", "i", "x", ""} <= verdicts(found, "mutant").keys()
    assert not any(verdicts(found, "mutant").values())
    assert "1 of 44" in found.notes[0]
    halves = page(kind="predicate", predicate="2*x == 7", domain="real")
    assert verdicts(halves, "example") == {"7/2": True}
    assert verdicts(page(kind="predicate", predicate="2*x == 7", domain="integer"), "example") == {}


def test_a_predicate_that_nearly_everything_fulfils_is_called_weak(page) -> None:
    assert page(kind="predicate", predicate="x > -1000").first[0].startswith("WEAK: ")


def test_a_claim_that_could_say_more_is_called_weak_and_one_that_is_false_is_told_with_its_counter_example(
    page,
) -> None:
    claim = "(declare-const x Int)(declare-const y Int)(assert (> x 2))(assert (>= y 0))"
    found = page(kind="smt", claim=f"{claim}(assert (! (>= (* x x) 9) :named goal))")
    assert found.first == (
        "WEAK: 1 of 6 variants that were changed on purpose are accepted: without assumption 2: y >= 0",
    )
    changed = mutants(found)
    assert "x = 3" in changed["a stronger goal: (x * x) > 9"].reason
    assert "x = 2" in changed["assuming less than assumption 1: x >= 2 instead of x > 2"].reason
    wrong = page(kind="smt", claim=f"{claim}(assert (not (> (* x x) 9)))")
    assert wrong.first[0].startswith("THE CLAIM IS NOT PROVED: it does not follow: a counter-example: x = 3")


def test_values_come_from_the_solver_and_each_assertion_is_missed_in_turn(page) -> None:
    claim = "(declare-const x Int)(declare-const y Int)(assert (= (+ x y) 10))(assert (> x y))(assert (> x (- y 1)))"
    found = page(kind="smt", question="model", claim=claim)
    assert list(verdicts(found, "example").values()) == [True]
    assert [one.reason for one in mutants(found).values()] == [
        "assertion 1 is false of these values",
        "assertion 2 is false of these values",
    ]
    assert any("follows from the others" in note for note in found.notes)


def test_an_optimum_is_reached_by_better_and_better_values(page) -> None:
    claim = "(declare-const x Int)(assert (> x 3))(assert (< x 9))(minimize x)"
    found = page(kind="smt", question="optimum", claim=claim)
    assert verdicts(found, "example")["((x 4))"] is True


def test_a_term_is_turned_round_and_changed(page) -> None:
    claim = "(declare-const a Int)(declare-const b Int)(define-fun reference () Int (+ a (* 2 b)))"
    found = page(kind="smt", question="equivalent", claim=claim)
    assert verdicts(found, "example") == {"(+ a (* 2 b))": False, "(+ (* 2 b) a)": True}
    assert mutants(found)
    assert not any(verdicts(found, "mutant").values())


def test_constants_fill_no_hole_and_the_answer_of_the_job_does(page) -> None:
    claim = (
        "(declare-fun inv (Int) Bool)(declare-const x Int)"
        "(assert (not (and (=> (= x 0) (inv x)) (=> (and (inv x) (< x 10)) (inv (+ x 1))) (=> (inv x) (>= x 0)))))"
    )
    found = page("(define-fun inv ((x Int)) Bool (>= x 0))", kind="smt", claim=claim, holes=["inv"])
    assert list(verdicts(found, "example").values()) == [True]
    assert list(verdicts(found, "mutant").values()) == [False, False]


def test_a_text_is_made_from_the_items_and_misses_each_in_turn(page) -> None:
    items = [
        {"item": "words", "name": "rome", "required": ["Rome"], "forbidden": ["Paris"]},
        {"item": "count", "name": "long", "of": "words", "least": 60, "most": 100},
        {"item": "headings", "name": "heads", "headings": ["Past", "Today"]},
        {"item": "table", "name": "sums", "columns": ["City", "Count"], "least_rows": 3, "sums": ["Count"]},
        {"item": "count", "name": "few", "of": "list_items", "least": 2},
        {"item": "code", "name": "code", "language": "python"},
        {"item": "occurrences", "name": "sea", "phrase": "the sea", "least": 2},
    ]
    found = page(kind="checklist", items=items)
    assert [one.accepted for one in found.examples if one.sort == "example"] == [True]
    for item in items:
        changed = mutants(found)[f"the text made to miss {item['name']!r}"]
        assert not changed.accepted
        assert f"{item['name']}: " in changed.reason
    assert found.first == ("All 8 variants that were changed on purpose are rejected",)


@pytest.mark.parametrize(
    "items",
    [
        [{"item": "json", "name": "n", "rules": json.dumps({"type": "array", "minItems": 50})}],
        [{"item": "json", "name": "n", "rules": json.dumps(PERSON), "within": "block"}],
        [
            {"item": "format", "name": "plain", "format": "plain"},
            {"item": "count", "name": "one", "of": "sentences", "least": 1, "most": 1},
            {"item": "words", "name": "sea", "required": ["sea"]},
        ],
        [
            {"item": "table", "name": "t", "columns": ["Field", "Tonnes"], "least_rows": 3, "sums": ["Tonnes"]},
            {"item": "numbers", "name": "f", "facts": ["120", "80"], "required": ["200"], "derived": "sums"},
        ],
    ],
)
def test_a_text_can_be_made_for_many_a_list(page, items) -> None:
    found = page(kind="checklist", items=items)
    assert [one.accepted for one in found.examples if one.sort == "example"] == [True], found.examples[0].reason


def test_a_list_for_which_no_text_can_be_made_says_so(page) -> None:
    found = page(kind="checklist", items=[{"item": "pattern", "name": "odd", "pattern": "[0-9]{40}", "how": "whole"}])
    assert found.first == ("NOTHING IS ACCEPTED of what was tried",)
    assert any("could be built" in note for note in found.notes)
    whole = page("7" * 40, kind="checklist", items=[{"item": "pattern", "name": "odd", "pattern": "[0-9]{40}"}])
    assert mutants(whole)["the text made to miss 'odd'"].accepted is False


def test_the_page_is_the_same_each_time_and_another_for_another_check(page) -> None:
    fields = {"kind": "predicate", "predicate": "x*x == 49"}
    assert page(**fields).digest() == page(**fields).digest()
    assert page(**fields).digest() != page(**fields, domain="integer").digest()
    assert page(**fields).digest() != page(asked="What else?", **fields).digest()
    table = JobFile(name="a.csv", sha256="0" * 64, bytes=1)
    assert page(**fields).digest() != page(files=(table,), **fields).digest()
    assert page(**fields).digest() != page("7", **fields).digest()


def test_an_expected_answer_that_the_check_itself_refuses_is_told_first(page) -> None:
    found = page(kind="answer", expected="2/4", form="simplified")
    assert found.first[0].startswith("THE EXPECTED ANSWER ITSELF IS REFUSED: ")
    assert found.examples[1].accepted


@pytest.mark.parametrize("sign", ["a", "\x1b", "🙂", "\u202e"])
def test_a_page_fits_into_an_envelope_whatever_the_job_came_to(page, sign) -> None:
    items = [{"item": "count", "name": f"{sign * 50}{number}", "of": "words", "least": 3} for number in range(100)]
    found = page(f"Three plain words. {sign * 50_000}", asked=sign * 100_000, kind="checklist", items=items)
    assert len(canonical(found.model_dump(mode="json"))) < 500_000


def test_what_could_not_be_run_is_never_told_as_rejected() -> None:
    def broken(pairs: Sequence[tuple[Spec, str]], seconds: float) -> list[Verdict]:
        fields = {"outcome": Outcome.INFRA_ERROR, "score": 0, "reason": "no broker", "verifier": "v", "version": "1"}
        return [Verdict.model_validate(fields | {"seconds": 0}) for _ in pairs]

    found = page_of(job("q", (), SIX), None, broken, lambda: 0.0)
    assert found.first == ("NOTHING COULD BE TRIED HERE: no broker",)


def judged(pairs: Sequence[tuple[Spec, str]], ground: Ground, accepted: str | None = None) -> list[Verdict]:
    """What a verifier says that accepts one text only."""
    fields = {"reason": "r", "verifier": "v", "version": "1", "seconds": 0}
    rejected = {"outcome": Outcome.FAIL, "score": 0, "ground": ground}
    passed = {"outcome": Outcome.PASS, "score": 1, "ground": Ground.PROVED}
    return [Verdict.model_validate(fields | (passed if text == accepted else rejected)) for _, text in pairs]


PRIME = {"kind": "predicate", "predicate": "x*x == 7918.5"}


@pytest.mark.parametrize("fields", [SIX, PRIME], ids=["answer", "predicate"])
def test_a_busy_machine_is_no_finding_about_the_check_and_the_jobs_answer_is_always_tried(fields) -> None:
    clock = itertools.chain([0.0], itertools.repeat(10_000.0))
    ask = lambda pairs, _: judged(pairs, Ground.REFUTED, "917")  # noqa: E731
    found = page_of(job("q", (), fields), "917", ask, lambda: next(clock))
    assert [(one.what, one.accepted) for one in found.examples] == [("the job's answer", True)]
    assert found.first[0].startswith("THE MACHINE IS TOO BUSY TO TRY EVERYTHING: ")
    assert not any("NOTHING" in line for line in found.first)


@pytest.mark.parametrize("slow", [0.0, 10.0])
def test_how_many_are_tried_does_not_depend_on_how_slow_the_machine_is(slow: float) -> None:
    clock = itertools.count(0.0, slow)
    asked: list[str] = []

    def ask(pairs: Sequence[tuple[Spec, str]], seconds: float) -> list[Verdict]:
        asked.extend(text for _, text in pairs)
        return judged(pairs, Ground.REFUTED)

    fields = {"kind": "predicate", "predicate": "x*x == 7918.5"}
    found = page_of(job("q", (), fields), None, ask, lambda: next(clock))
    assert len(asked) > 40
    assert found.first == ("NOTHING IS ACCEPTED of what was tried",)


def test_what_is_not_decided_in_its_own_time_is_not_said_to_be_rejected() -> None:
    found = page_of(job("q", (), SIX), None, lambda pairs, _: judged(pairs, Ground.TIMEOUT), lambda: 0.0)
    assert found.first == ("NOTHING WAS DECIDED: 8 examples took too long",)


def test_programs_next_to_the_reference_are_asked_about_and_idle_ones() -> None:
    """Which are asked; that the tests then decide is tried with sandboxes elsewhere."""
    asked: list[str] = []

    def ask(pairs: Sequence[tuple[Spec, str]], seconds: float) -> list[Verdict]:
        asked.extend(text for _, text in pairs)
        fields = {"outcome": Outcome.FAIL, "score": 0, "reason": "r", "verifier": "v", "version": "1", "seconds": 0}
        return [Verdict.model_validate(fields) for _ in pairs]

    fields = {"function": "f", "examples": [{"arguments": "1", "expected": "2"}]}
    spec = ProgramSpec.model_validate(fields | {"reference": "def f(x):\n    return x + 1\n"})
    page_of(job("q", (), spec.model_dump()), None, ask, time.monotonic)
    assert asked[0] == spec.reference
    assert any("x - 1" in text for text in asked)
    bare = page_of(job("q", (), {"kind": "program", **fields}), None, ask, time.monotonic)
    assert any("no right program" in note for note in bare.notes)
    assert len(bare.examples) <= MOST_EXAMPLES


def test_numbers_are_read_as_they_are_written() -> None:
    found = [number_in(text) for text in ("-3", "0.50", "2/4", "\\frac{1}{2}", "1/0", "2 3", "x", "1.5/2")]
    assert [str(number) for number in found] == ["-3", "1/2", "1/2", "1/2", "None", "None", "None", "None"]
    assert len(values_for(PredicateSpec(predicate=" + ".join(f"{number}*x" for number in range(99)) + " == 7"))) <= 150


def test_a_claim_is_written_back_as_it_was_read() -> None:
    claim = '(set-info :a "b")\n(declare-const |odd name| (_ BitVec 8))\n(assert (= |odd name| #x0f))'
    nodes = read(claim, CLAIM)
    assert "\n".join(map(source, nodes)) == claim
    assert parts_of(nodes).constants == ["odd name: bit vector of 8"]
