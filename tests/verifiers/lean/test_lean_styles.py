"""Statements as miniF2F, ProofNet and Mathlib write them: honest submissions pass, and others do not, warm and cold."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from tables import table

from verifiers.contract.verdict import Outcome
from verifiers.lean.reading.commands import as_plain_file
from verifiers.lean.reading.lexer import code, normalized, without_comments, words
from verifiers.lean.reading.screening import parts, screen
from verifiers.lean.spec import LeanSpec
from verifiers.lean.statement import read_statement
from verifiers.lean.submission import LeanSource, assemble
from verifiers.lean.verifier import LeanVerifier

STYLES: dict[str, list[dict[str, Any]]] = tomllib.loads(Path(__file__).with_name("styles.toml").read_text("utf-8"))
COLD = ("a structure in a section", "an exported class", "local-instance", "namespace-defs", "private-def", "two-in")
PROOFS_OPEN = (":= sorry", ":= by sorry", "sorry")


def spec_of(case: dict[str, Any]) -> LeanSpec:
    return LeanSpec(statement=case["statement"], seconds=20.0)


@pytest.mark.parametrize("case", STYLES["control"], ids=lambda case: case["name"])
def test_an_honest_submission_passes(lean: LeanVerifier, case: dict[str, Any]) -> None:
    for submission in case["submissions"]:
        verdict = lean.verify(spec_of(case), submission)
        assert verdict.passed, (submission, verdict)


@pytest.mark.parametrize("case", STYLES["control"], ids=lambda case: case["name"])
def test_the_statement_given_back_is_no_proof(lean: LeanVerifier, case: dict[str, Any]) -> None:
    if case["statement"].rstrip().endswith(PROOFS_OPEN):
        verdict = lean.verify(spec_of(case), case["statement"])
        assert verdict.outcome is Outcome.FAIL, verdict


@pytest.mark.parametrize("case", STYLES["cheat"], ids=lambda case: case["name"])
def test_a_dishonest_submission_does_not_pass(lean: LeanVerifier, case: dict[str, Any]) -> None:
    for submission in case["submissions"]:
        verdict = lean.verify(spec_of(case), submission)
        assert verdict.outcome in (Outcome.FAIL, Outcome.HACK_SUSPECTED), (submission, verdict)


@pytest.mark.parametrize("kind", ["control", "cheat"])
def test_without_warm_headers_the_verdicts_are_the_same(
    lean: LeanVerifier, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lean._boxes, "headers", "not with this version")
    for case in STYLES[kind]:
        if case["name"] in COLD or kind == "cheat":
            for submission in case["submissions"][: None if kind == "control" else 2]:
                assert lean.verify(spec_of(case), submission).passed == (kind == "control"), submission


@table("case", STYLES["read"], ids=lambda case: case["name"])
def test_a_statement_that_needs_mathlib_is_read_and_its_submissions_are_not_refused(case: dict[str, Any]) -> None:
    spec = spec_of(case)
    statement = read_statement(spec)
    trusted = statement.trusted_file("mark")
    assert trusted.count("mark") == 1
    last = statement.full_name.rpartition(".")[2]
    for submission in case["submissions"]:
        text = normalized(submission)
        every = list(words(text))
        assert screen(text, every, allowed=parts(spec.statement)) == []
        text = without_comments(text, every)
        text = as_plain_file(text, code(text))
        source = assemble(spec, statement, text, code(text))
        assert isinstance(source, LeanSource)
        assert last in source.text
        opened = [line for line in source.text.splitlines() if line.startswith("namespace")]
        assert len(opened) == len(set(opened)), source.text
