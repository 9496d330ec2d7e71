"""A check that is put into words keeps what it means: another check has other words."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tables import table
from test_statement import SPECS

from appliance.jobs.validation import MOST_LINES, MOST_TEXT, bounded, in_words, question_lines
from verifiers.registry.spec import SPEC, Spec

CLAIM = "(declare-const x Int)(assert (> x 2))(assert (! (> x 1) :named goal))"
BASES: dict[str, dict[str, Any]] = SPECS | {
    "holes": {"kind": "smt", "claim": "(declare-fun f (Int) Int)(assert (not (= (f 1) 1)))", "holes": ["f"]},
    "runs": {"kind": "program", "runs": [{"stdin": "1", "expected": "2"}]},
    "made": {
        "kind": "program",
        "runs": [{"stdin": "1", "expected": "2"}],
        "reference": "print(int(input()) + 1)\n",
        "maker": "print(input())\n",
        "cases": ["1"],
    },
    "close": {
        "kind": "program",
        "function": "f",
        "examples": [{"arguments": "1", "expected": "2.5"}],
        "compare": {"rule": "close"},
    },
}
INPUT = {"kind": "list", "of": {"kind": "integer", "low": 0, "high": 9}, "least": 1, "most": 5}
WORDS = {"item": "words", "name": "n", "required": ["Rome"]}
CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("exact", {"expected": "no"}),
    ("exact", {"abstention": "unknown"}),
    ("integer", {"expected": "7"}),
    ("expression", {"expected": "3*x"}),
    ("expression", {"variables": ["x"]}),
    *(("answer", {"expected": "7", "notation": notation}) for notation in ("plain", "digits")),
    ("predicate", {"predicate": "7*x + 3 == 46"}),
    ("predicate", {"predicate": "7*y + 3 == 45", "variable": "y"}),
    *(("predicate", {"domain": domain}) for domain in ("rational", "real", "complex")),
    ("answer", {"expected": "1/3"}),
    ("answer", {"final": "boxed"}),
    *(("answer", {"form": form}) for form in ("equal", "simplified", "same")),
    ("answer", {"absolute": "0.01"}),
    ("tolerance", {"absolute": "0.01"}),
    ("answer", {"relative": "0.01"}),
    ("answer", {"order": "any"}),
    ("answer", {"units": "optional"}),
    ("answer", {"units": "ignored"}),
    ("answer", {"variables": ["x"]}),
    *(("answer", {"domain": domain}) for domain in ("complex", "positive", "integer")),
    *(("smt", {"question": question}) for question in ("model", "equivalent")),
    ("smt", {"claim": CLAIM.replace("(> x 2)", "(>= x 2)")}),
    ("smt", {"claim": CLAIM.replace("Int", "Real")}),
    ("smt", {"claim": "(assert (! (forall ((x Int)) (=> (> x 2) (> x 1))) :named goal))"}),
    ("smt", {"claim": "(assert (! (exists ((x Int)) (=> (> x 2) (> x 1))) :named goal))"}),
    ("smt", {"goal": "other"}),
    ("smt", {"uses": ["x"]}),
    ("smt", {"allowed": ["+"]}),
    ("smt", {"allowed": []}),
    ("smt", {"forbidden": ["*"]}),
    ("smt", {"max_size": 9}),
    ("smt", {"division": "total"}),
    ("smt", {"second": "required"}),
    ("smt", {"second": "none"}),
    ("smt", {"effort": 5_000}),
    ("holes", {"holes": []}),
    ("lean", {"statement": "theorem t : 1 = 2 := sorry"}),
    ("lean", {"imports": ["Std"]}),
    ("lean", {"require_replay": True}),
    ("lean", {"seconds": 9}),
    ("lean", {"memory_mib": 1024}),
    ("lean", {"heartbeats": 9}),
    ("lean", {"kernels": 2}),
    ("program", {"function": "g"}),
    ("program", {"driver": "def drive(solution, *given):\n    return solution(*given)\n"}),
    ("program", {"examples": [{"arguments": "1", "expected": "3"}]}),
    ("program", {"examples": [{"arguments": "1", "raises": "ValueError"}]}),
    ("program", {"examples": [{"arguments": "1", "expected": "2", "visible": True}]}),
    ("program", {"examples": [{"arguments": "1", "expected": "2", "compare": {"rule": "equal"}}]}),
    ("program", {"inputs": [INPUT]}),
    ("program", {"inputs": [INPUT], "generate": 5, "reference": "def f(x):\n    return 2\n"}),
    ("program", {"reference": "def f(x):\n    return 2\n"}),
    ("program", {"properties": ["def holds(result, x):\n    return True\n"]}),
    ("program", {"relations": [{"kind": "permutation"}]}),
    ("program", {"compare": {"rule": "any_order"}}),
    ("close", {"compare": {"rule": "close", "absolute": 0.1}}),
    ("close", {"compare": {"rule": "close", "relative": 0.1}}),
    ("runs", {"output": "tokens"}),
    ("runs", {"runs": [{"stdin": "1", "expected": "2", "exit_code": None}]}),
    ("runs", {"runs": [{"stdin": "1", "expected": "2", "arguments": ["a"]}]}),
    ("runs", {"language": "c"}),
    ("made", {"maker": "print(2 * input())\n"}),
    ("made", {"cases": ["2"]}),
    ("made", {"slack": 3.0}),
    ("runs", {"tool": {"file": "a.b", "run": ["/bin/x"]}}),
    ("program", {"seconds": 1}),
    ("program", {"total_seconds": 1}),
    ("program", {"memory_mib": 64}),
    ("program", {"output_bytes": 1_000}),
    ("program", {"fresh": True}),
    ("program", {"twice": "never"}),
    ("program", {"suspicion": "refuses"}),
    ("program", {"partial": True}),
    ("checklist", {"question": "Write."}),
    ("checklist", {"sources": [{"key": "a"}]}),
    ("checklist", {"soft_share": 0.1}),
    ("checklist", {"soft_needed": 0.1}),
    ("checklist", {"credit": "items"}),
    ("checklist", {"allowed": ["copy"]}),
]
ITEMS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (WORDS, {"forbidden": ["Paris"]}),
    ({"item": "count", "of": "words", "least": 5}, {"least": 6}),
    ({"item": "count", "of": "words", "least": 5}, {"most": 6}),
    ({"item": "count", "of": "words", "least": 5}, {"of": "lines"}),
    ({"item": "length", "target": 5}, {"unit": "characters"}),
    ({"item": "length", "target": 5}, {"tolerance": 0.1}),
    ({"item": "occurrences", "phrase": "a", "least": 1}, {"most": 1}),
    ({"item": "headings", "headings": ["A"]}, {"only": True}),
    ({"item": "headings", "headings": ["A"]}, {"filled": False}),
    ({"item": "headings", "headings": ["A"]}, {"level": 2}),
    ({"item": "order", "phrases": ["a", "b"]}, {"phrases": ["b", "a"]}),
    ({"item": "table", "columns": ["a"]}, {"sums": ["a"]}),
    ({"item": "table", "columns": ["a"]}, {"most_rows": 3}),
    ({"item": "code"}, {"language": "python"}),
    ({"item": "format", "format": "json"}, {"format": "plain"}),
    ({"item": "json", "rules": "{}"}, {"rules": '{"type": "array"}'}),
    ({"item": "json", "rules": "{}"}, {"within": "block"}),
    ({"item": "pattern", "pattern": "a"}, {"how": "absent"}),
    ({"item": "pattern", "pattern": "a"}, {"any_case": True}),
    ({"item": "citations"}, {"least": 2}),
    ({"item": "citations"}, {"least_quotations": 2}),
    ({"item": "citations"}, {"addresses": False}),
    ({"item": "numbers", "facts": ["1"]}, {"derived": "all"}),
    ({"item": "numbers", "facts": ["1"]}, {"required": ["1"]}),
    ({"item": "numbers", "facts": ["1"]}, {"free_up_to": 9}),
    ({"item": "numbers", "facts": ["1"]}, {"from_sources": True}),
    ({"item": "script", "scripts": ["LATIN"]}, {"share": 0.5}),
    ({"item": "soft", "point": "It is kind."}, {"point": "It is rude."}),
]


def spec(name: str, **more: Any) -> Spec:
    return SPEC.validate_python(BASES[name] | more)


@table(("name", "change"), CHANGES, ids=lambda part: str(part)[:60])
def test_whatever_is_changed_in_a_check_is_seen_in_its_words(name, change) -> None:
    assert in_words(spec(name, **change)) != in_words(spec(name))


@table(("item", "change"), ITEMS, ids=lambda part: str(part)[:60])
def test_whatever_is_changed_in_an_item_is_seen_in_its_words(item, change) -> None:
    one, other = ({**item, "name": "n"} | more for more in ({}, change))
    assert in_words(spec("checklist", items=[one])) != in_words(spec("checklist", items=[other]))


def test_every_field_of_every_kind_is_among_those_that_were_changed() -> None:
    """`proof` adds evidence and moves no verdict; `copies`, `reference` and `seed` are asked of below."""
    changed: dict[str, set[str]] = {}
    for name, change in CHANGES:
        changed.setdefault(spec(name).kind, set()).update(change)
    aside = {"kind", "proof", "copies", "reference", "seed", "items"}
    for name in SPECS:
        kind = type(spec(name))
        missing = set(kind.model_fields) - changed[spec(name).kind] - aside
        assert missing == set(), kind.__name__


def test_what_only_matters_beside_something_else_is_said_there() -> None:
    term = {"question": "equivalent", "claim": "(define-fun reference () Int 1)(define-fun other () Int 1)"}
    assert in_words(spec("smt", **term)) != in_words(spec("smt", **term, copies="allowed"))
    assert in_words(spec("smt", **term)) != in_words(spec("smt", **term, reference="other"))
    made = {"inputs": [INPUT], "generate": 5, "reference": "def f(x):\n    return 2\n"}
    assert in_words(spec("program", **made)) != in_words(spec("program", **made, seed=1))


def test_a_claim_is_read_with_its_quantifiers_its_assumptions_and_its_goal() -> None:
    claim = "(declare-const x Int)(assert (> x 2))(assert (! (exists ((y Int)) (= (* y y) x)) :named goal))"
    lines = "\n".join(in_words(spec("smt", claim=claim)))
    assert "for all values of these:\n    x: Int\nif all of this holds:\n    1. x > 2\nthen this holds:\n" in lines
    assert "there is y: Int so that ((y * y) = x)" in lines


def test_a_claim_that_nobody_can_put_into_words_is_shown_as_it_is() -> None:
    for claim in ("(assert (", "(set-logic"):
        assert any(claim in line for line in in_words(spec("smt", claim=claim)))
    deep = "(assert " + "(not " * 950 + "true" + ")" * 951
    assert in_words(spec("smt", claim=deep))


def test_what_is_too_long_is_cut_and_its_digest_said() -> None:
    long = "\n".join(f"line {number}" for number in range(10 * MOST_LINES))
    lines = in_words(spec("exact", expected=long[:9_000]))
    assert len(lines) <= MOST_LINES + 1
    assert "SHA-256" in lines[-1]
    other = in_words(spec("exact", expected=long[:8_999] + "x"))
    assert lines[-1] != other[-1]


@given(st.lists(st.text(alphabet="aé🙂\x1b", max_size=900), max_size=400))
def test_lines_are_few_short_and_bounded_and_a_cut_never_goes_unsaid(lines) -> None:
    shown = bounded(lines)
    assert len(shown) <= MOST_LINES + 1
    assert sum(len(line.encode("ascii", "backslashreplace")) for line in shown) <= MOST_TEXT + 1_000
    assert shown == tuple(lines) or "not shown" in shown[-1]


def test_a_question_keeps_its_lines() -> None:
    assert question_lines("a\nb") == ("a", "b")
