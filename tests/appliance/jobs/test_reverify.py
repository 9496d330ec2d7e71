"""What a bundle says of itself is held against the verdict of now; what nobody checked is said."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bundle_kit import AT, KEY, KINDS, QUESTION, SPEC, TRANSCRIPT, VERDICT, VERSIONS, sealed, signer, verify

from appliance import __version__
from appliance.cli.jobs.verify import _validation_beside
from appliance.jobs import check
from appliance.jobs.bundle import write_bundle
from appliance.jobs.layout import TranscriptEntry, canonical
from appliance.jobs.reading import CheckedFile, FileState
from appliance.jobs.report import BundleReport, NotChecked, page
from appliance.jobs.reverify import disagreements, same_tools, statement_faults
from appliance.jobs.statement import statement_of
from appliance.records.jobs import MEANING, JobFile, Validation
from appliance.records.rollouts import Role
from policies.envelopes import canonical as signed_form
from policies.envelopes import sign_envelope
from policies.statements import VALIDATION_TYPE, Page, SignedValidation
from verifiers.checklists.spec import ChecklistSpec, SoftItem
from verifiers.contract.statement import Assurance, StatementPart
from verifiers.contract.verdict import Ground, Judgement, Outcome, Verdict
from verifiers.lean.spec import LeanSpec
from verifiers.registry.spec import Spec, SpecModel

HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e</pre>&amp;"
DATA = b"7,45\n"
FILES = [JobFile(name="data.csv", sha256=hashlib.sha256(DATA).hexdigest(), bytes=len(DATA))]
ADA = signer("ada")
OURS = {**VERSIONS, "assay": __version__}


class Decided:
    """A verifier that was asked already: these tests are about what becomes of its verdict."""

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def check(self, spec: Spec, submission: str, seconds: float | None = None) -> Verdict:
        return self._verdict


def checked(folder: Path, verdict: Verdict = VERDICT, **more) -> BundleReport:
    return check.check_bundle(folder, checker=Decided(verdict), **more)


def validation_by(
    verdict: str = "meant",
    *,
    by=ADA,
    question: str = QUESTION,
    spec: SpecModel = SPEC,
    at: str = AT,
    received: str | None = None,
) -> Validation:
    shown = Page(question=(question,), words=("x with 7x+3=45",), first=(), examples=(), verifier="predicate 1")
    about = {"verdict": verdict, "job": "job-1", "content": _digest_of(question, spec), "page": shown}
    statement = SignedValidation.valid_for(24, made_at=at, person="ada", nonce="0" * 32, **about)
    return Validation(
        verdict=verdict,
        shown=shown.digest(),
        person="ada",
        created=received or at,
        key=by.public.fingerprint,
        envelope=sign_envelope(statement.payload(), VALIDATION_TYPE, by).decode(),
    )


def _digest_of(question: str, spec: SpecModel) -> str:
    """As it is written, by whatever version."""
    files = [file.model_dump(mode="json") for file in FILES]
    content = {"question": question, "spec": spec.model_dump(mode="json"), "files": files}
    return hashlib.sha256(signed_form(content)).hexdigest()


def made(
    folder: Path, meaning: Validation | None = None, statement: tuple[StatementPart, ...] | None = None, **more
) -> Path:
    claims = statement_of(SPEC, VERDICT, meaning=meaning, files=FILES) if statement is None else statement
    return sealed(folder, meaning=meaning, statement=claims, versions=OURS, **more)


def not_checked(report: BundleReport) -> str:
    return "\n".join(f"{one.what}: {one.why}" for one in report.not_checked)


def test_a_persons_word_counts_with_their_key_and_is_named_without(tmp_path: Path) -> None:
    folder = made(tmp_path / "job-1", validation_by())
    without, known = checked(folder), checked(folder, people=[signer("bob").public, ADA.public])
    assert without.ok, without.reasons
    assert known.ok, known.reasons
    assert (without.mark, known.mark) == ("verified, not validated", "verified and validated")
    assert (
        f"the validation by ada, that the check says what was meant: the key {ADA.public.fingerprint}"
        in not_checked(without)
    )
    assert "the validation by ada" not in not_checked(known)
    silent = f"a validation signed by {signer('bob').public.fingerprint}: it is neither in the bundle"
    assert silent in not_checked(known)
    assert silent not in not_checked(without)
    assert [claim.standing for claim in without.statement_then].count(Assurance.VALIDATED) == 1
    assert [claim.standing for claim in without.statement_now].count(Assurance.VALIDATED) == 0
    (meaning,) = (claim for claim in without.statement_now if claim.part == MEANING)
    assert meaning.by.startswith("a signature that was not checked")


def test_a_word_about_something_else_or_with_a_forged_signature_fails(tmp_path: Path) -> None:
    other = made(tmp_path / "other", validation_by(question="another question"))
    assert "is about the content" in checked(other).reasons[0]
    forged = validation_by(by=signer("mallory")).model_copy(update={"key": ADA.public.fingerprint})
    assert "invalid validation" in checked(made(tmp_path / "forged", forged)).reasons[0]
    as_ada = forged.model_copy(
        update={"envelope": forged.envelope.replace(signer("mallory").public.fingerprint, ADA.public.fingerprint)}
    )
    folder = made(tmp_path / "as-ada", as_ada)
    assert checked(folder).mark == "verified, not validated"
    assert not checked(folder, people=[ADA.public]).ok


def test_a_word_that_was_given_later_lies_beside_and_the_latest_counts(tmp_path: Path) -> None:
    folder = made(tmp_path / "job-1", validation_by())
    later = validation_by("not_meant", at="2026-02-03T04:05:06+00:00")
    (tmp_path / "job-1.meaning.json").write_bytes(canonical(later.model_dump(mode="json")))
    beside = _validation_beside(folder)
    assert beside == _validation_beside(tmp_path / "job-1.zip")
    report = checked(folder, people=[ADA.public], later=beside)
    assert report.ok
    assert report.mark != checked(folder, people=[ADA.public]).mark == "verified and validated"
    assert "does not say what was meant" in not_checked(checked(folder, later=beside))
    assert not checked(folder, later=b"{}\n").ok


def test_of_two_words_the_one_that_was_signed_later_counts_whatever_time_is_written_beside(tmp_path: Path) -> None:
    no = validation_by("not_meant", at="2026-01-02T00:00:00+00:00")
    folder = made(tmp_path / "job-1", no)
    for at in ("2026-01-01T00:00:00+00:00", "2026-01-02T00:30:00+01:00", "2026-01-02T01:00:00+01:00"):
        for received in ("2026-01-09T00:00:00+00:00", "2025-01-09T00:00:00+00:00", "z"):
            yes = canonical(validation_by(at=at, received=received).model_dump(mode="json"))
            report = checked(folder, people=[ADA.public], later=yes)
            assert (report.ok, report.mark) == (True, "verified, but not what was meant"), (at, received)
            assert any("2026-01-02T00:00:00+00:00 says that it does not" in claim.by for claim in report.statement_now)
    yes = canonical(validation_by(at="2026-01-02T00:30:00-01:00", received="2025-01-01").model_dump(mode="json"))
    report = checked(folder, people=[ADA.public], later=yes)
    assert (report.ok, report.mark) == (True, "verified and validated")
    assert any("at 2026-01-02T00:30:00-01:00" in claim.by for claim in report.statement_now)


def test_a_bundle_that_says_more_of_itself_than_its_verdict_carries_fails(tmp_path: Path) -> None:
    tested = VERDICT.model_copy(update={"ground": Ground.TESTED})
    proved = statement_of(SPEC, VERDICT, files=FILES)
    folder = made(tmp_path / "job-1", statement=proved, verdict=tested)
    assert any("claims too much, proved" in reason for reason in checked(folder, tested).reasons)
    short = made(tmp_path / "job-2", statement=proved[:1])
    assert any("lacks a part" in reason for reason in checked(short).reasons)
    validated = tuple(
        claim.model_copy(update={"standing": Assurance.VALIDATED}) if claim.standing is Assurance.OPEN else claim
        for claim in proved
    )
    assert not checked(made(tmp_path / "job-3", statement=validated)).ok
    assert checked(made(tmp_path / "job-4", statement=())).ok


def test_words_of_another_version_of_the_program_may_differ_but_not_what_they_claim() -> None:
    proved = [StatementPart(part="that it is so", standing=Assurance.PROVED, by="x")]
    tested = [StatementPart(part="that it held", standing=Assurance.TESTED, by="x")]
    assert statement_faults(tested, proved, strictly=False, judged=False) == []
    assert statement_faults(proved, tested, strictly=False, judged=False)


@pytest.mark.parametrize("standing", [Assurance.VALIDATED, Assurance.PROVED, Assurance.TESTED, Assurance.JUDGED])
def test_no_part_stands_higher_than_it_is_carried_whatever_version_the_bundle_names(
    tmp_path: Path, standing: Assurance
) -> None:
    """Who made it chose the version, too: nobody validated this, and nothing shows what stands open."""
    carried = statement_of(SPEC, VERDICT, files=FILES)
    raised = tuple(
        claim.model_copy(update={"standing": standing}) if claim.standing is Assurance.OPEN else claim
        for claim in carried
    )
    assert statement_faults(carried, carried, strictly=False, judged=False) == []
    faults = statement_faults(raised, carried, strictly=False, judged=False)
    assert len(faults) == sum(claim.standing is Assurance.OPEN for claim in carried) > 1
    versions = {**OURS, "assay": "0.0.1"}
    report = checked(sealed(tmp_path / "job-1", meaning=None, statement=raised, versions=versions))
    assert not report.ok
    assert any(f"claims too much, {standing}" in reason for reason in report.reasons)


def test_a_part_of_another_version_stands_no_higher_than_the_best_that_is_carried() -> None:
    tested = [StatementPart(part="that it held", standing=Assurance.TESTED, by="x")]
    for standing, holds in {Assurance.TESTED: True, Assurance.PROVED: False, Assurance.VALIDATED: False}.items():
        other = [StatementPart(part="in other words", standing=standing, by="x")]
        assert (statement_faults(other, tested, strictly=False, judged=False) == []) is holds


def test_a_models_grades_are_not_asked_for_again_and_carry_nothing(tmp_path: Path) -> None:
    hard_only, answer = KINDS["a text"]
    assert isinstance(hard_only, ChecklistSpec)
    tone = SoftItem(name="tone", point="The tone is friendly.")
    spec = hard_only.model_copy(update={"items": (*hard_only.items, tone)})
    hard = VERDICT.model_copy(update={"ground": Ground.TESTED, "verifier": "checklist"})
    then = hard.model_copy(update={"score": 0.9, "reason": "graded", "evidence": {"soft": [{"grade": 0.7}]}})
    now = hard.model_copy(update={"score": 0.7, "evidence": {"not_judged": ["tone"], "because": "no judge"}})
    assert disagreements(spec, then, now) == []
    assert disagreements(spec, hard, now)  # a score that no judge explains
    folder = sealed(tmp_path / "job-1", spec=spec, answer=answer, verdict=then, statement=())
    report = checked(folder, now)
    assert report.ok
    assert "the grades of a model judge" in not_checked(report)


def test_how_a_machine_came_to_a_proof_is_no_disagreement() -> None:
    spec = LeanSpec(statement="theorem target : 2 + 2 = 4 := sorry")
    then, now, other = (
        VERDICT.model_copy(update={"verifier": "lean", "evidence": {"axioms": axioms, **machine}})
        for axioms, machine in (
            ([], {"headers": "warm"}),
            ([], {"headers": "cold", "kernel": "4.24.0 (below 4.34.0: #14576)"}),
            (["propext"], {"headers": "warm"}),
        )
    )
    assert disagreements(spec, then, now) == []
    assert disagreements(spec, then, other) == ["the stored reason or evidence differs from the verifier's"]


def test_a_proof_of_two_kernels_is_decided_again_by_two(tmp_path: Path) -> None:
    spec = LeanSpec(statement="theorem target : 2 + 2 = 4 := sorry", kernels=2)
    tools = {"lean": "4.35.0", "second_kernel": "nanoda_bin sha256:1"}
    evidence = {"second_kernel": tools["second_kernel"], "second_verdict": "accepts"}
    then = VERDICT.model_copy(update={"verifier": "lean", "evidence": evidence, "tools": tools})
    none = Judgement(Ground.BROKEN, "none is installed", {}).verdict("lean", then.version, tools={"lean": "4.35.0"})
    assert disagreements(spec, then, then) == []
    assert disagreements(spec, then, none) == ["this machine could not decide it again: none is installed"]
    lean4lean = {"second_kernel": "lean4lean sha256:2"}
    other = then.model_copy(update={"evidence": evidence | lean4lean, "tools": tools | lean4lean})
    assert (disagreements(spec, then, other), same_tools(then, other)) == ([], False)
    hidden = then.model_copy(update={"evidence": evidence | {"second_verdict": "refuses"}})
    assert disagreements(spec, hidden, then) == ["the stored reason or evidence differs from the verifier's"]


def test_a_check_that_no_model_grades_has_no_grades_behind_which_a_score_could_hide(tmp_path: Path) -> None:
    hard_only, text = KINDS["a text"]
    for number, (spec, answer) in enumerate([(SPEC, "6"), (hard_only, text)]):
        for change in ({"score": 0.25}, {"reason": "proved by three referees"}, {"score": 1.0}):
            then = VERDICT.model_copy(update={**change, "evidence": {"soft": []}})
            folder = sealed(tmp_path / f"{number}-{'-'.join(change)}", spec=spec, answer=answer, verdict=then)
            report = checked(folder)
            assert any("the stored" in reason for reason in report.reasons), change
            assert "the grades of a model judge" not in not_checked(report)


def test_with_other_tools_only_the_outcome_is_compared_and_that_is_said(tmp_path: Path) -> None:
    folder = made(tmp_path / "job-1")
    other = VERDICT.model_copy(update={"tools": {"z3": "9.9"}, "reason": "in other words"})
    report = checked(folder, other)
    assert report.ok
    assert "only the outcome was compared" in not_checked(report)
    assert not checked(folder, VERDICT.model_copy(update={"reason": "in other words"})).ok


def test_a_machine_that_cannot_decide_says_what_it_could_not(tmp_path: Path) -> None:
    broken = VERDICT.model_copy(
        update={
            "outcome": Outcome.INFRA_ERROR,
            "ground": Ground.BROKEN,
            "score": 0.0,
            "reason": "there is no Lean here",
        }
    )
    report = checked(made(tmp_path / "job-1"), broken)
    assert report.undecided
    wrong = checked(made(tmp_path / "job-2", validation_by(question="another question")), broken)
    assert not wrong.undecided
    assert report.not_checked[0] == NotChecked(
        what="the answer", why="this machine could not run the verifier again: there is no Lean here"
    )


def test_who_made_it_is_said_to_be_open_without_a_key_and_without_a_seal(tmp_path: Path) -> None:
    folder = made(tmp_path / "job-1")
    assert "who made it: anybody can seal" in not_checked(checked(folder))
    assert "who made it" not in not_checked(checked(folder, key=KEY.public))
    (folder / "seal.json").unlink()
    assert "who made it: the bundle has no valid seal" in not_checked(checked(folder))
    assert checked(folder, key=KEY.public).reasons == ("the bundle has no seal",)


def test_a_transcript_and_what_the_maker_states_are_never_said_to_be_checked(tmp_path: Path) -> None:
    lines = not_checked(checked(made(tmp_path / "job-1")))
    assert f"the transcript: {len(TRANSCRIPT)} parts, 1 tool calls" in lines
    assert "the maker states them" in lines


def test_a_bundle_of_a_solver_says_so_and_names_no_model(tmp_path: Path) -> None:
    folder = tmp_path / "job-1"
    write_bundle(
        folder,
        answer="6",
        question=QUESTION,
        spec=SPEC,
        verdict=VERDICT,
        transcript=[],
        versions={**OURS, "weights": ""},
        solved_by="enumeration 1",
        meaning=None,
    )
    report = checked(folder)
    assert (report.ok, report.solved_by) == (True, "enumeration 1")
    assert "no model" in page(report)


def test_the_page_shows_hostile_text_and_lets_it_do_nothing() -> None:
    claim = StatementPart(part=HOSTILE, standing=Assurance.OPEN, by=HOSTILE)
    bad = VERDICT.model_copy(update={"reason": HOSTILE, "evidence": {HOSTILE: HOSTILE}, "tools": {HOSTILE: HOSTILE}})
    report = BundleReport(
        ok=False,
        manifest="ab" * 32,
        files=(CheckedFile(name=HOSTILE, state=FileState.ADDED, detail=HOSTILE),),
        answer=HOSTILE,
        question=HOSTILE,
        solved_by=HOSTILE,
        verdict_then=bad,
        verdict_now=bad,
        statement_then=(claim,),
        statement_now=(claim,),
        spec=SPEC.model_copy(update={"predicate": HOSTILE}),
        transcript=(TranscriptEntry(parent=None, role=Role.ASSISTANT, text=HOSTILE, sampled=True),),
        made_with={HOSTILE: {HOSTILE: HOSTILE}},
        reasons=(HOSTILE,),
        not_checked=(NotChecked(what=HOSTILE, why=HOSTILE),),
        notes=(HOSTILE,),
    )
    shown = page(report)
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;alert(1)") > 15
    assert shown.count("</pre>") == shown.count("<pre>") == 5
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "default-src &#x27;none&#x27;" in shown
    assert "src=" not in shown
    assert "href=" not in shown


def test_the_verdict_comes_first_and_says_whose_seal_there_is_if_any(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, own = made(tmp_path / "job-1"), tmp_path / "own.pub"
    own.write_text(KEY.public.line + "\n")
    for file, whose in ((own, "this machine's own key"), (tmp_path / "none.pub", "that was not given")):
        assert verify(folder, json_out=False, own=file) == 0
        out = capsys.readouterr().out
        assert (out.startswith("verified: every byte is intact"), whose in out) == (True, True)
        assert ("who made it: anybody can seal" in out) is ("not given" in whose)
    (folder / "seal.json").unlink()
    assert verify(folder, json_out=False, own=own) == 0
    out = capsys.readouterr().out
    assert out.startswith("verified, but not sealed: ")
    assert "sealed: no: anyone who had it" in out


def test_a_reader_that_has_seen_enough_is_no_fault(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "appliance.cli.main", "verify", str(made(tmp_path / "job-1"))]
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")
