"""The kind `lean`: a theorem whose proof Lean's kernel must accept."""

from __future__ import annotations

from dataclasses import replace

from verifiers.contract.kinds import AnswerForm, Kind, KindOption, Lazy, always

STATEMENT = KindOption(flag="--statement", takes="file", metavar="FILE", help="Theorem to prove, a Lean file.")
LEAN = Kind(
    name="lean",
    about="Does this file prove the statement, with no axiom but those allowed? 0 yes, 1 no.",
    job="theorem",
    spec=Lazy("verifiers.lean.spec:LeanSpec"),
    verifier=Lazy("verifiers.lean.verifier:LeanVerifier"),
    revision="6",
    seconds=60.0,
    runs=True,
    conducted=always,
    conductor=Lazy("verifiers.lean.verifier:conductor"),
    check=Lazy("verifiers.lean.statement:read_statement"),
    missing=Lazy("verifiers.lean.toolchain:missing"),
    explain=Lazy("verifiers.lean.explain:explain"),
    parts=Lazy("verifiers.lean.explain:parts"),
    examples=Lazy("verifiers.lean.examples:examples"),
    examples_seconds=15.0,
    examples_tries=16,
    examples_at_once=2,
    answer_form=lambda _spec: AnswerForm.BLOCK,
    asks_for=lambda _spec: "End with the whole Lean proof in one fenced code block.",
    question=Lazy("verifiers.lean.explain:question"),
    solvers=Lazy("verifiers.lean.solvers:solvers"),
    suffix=".lean",
    example="assay check lean --statement sum.lean --submission proof.lean",
    visible=Lazy("verifiers.lean.explain:visible"),
    options=(replace(STATEMENT, help="The trusted statement, a Lean file."),),
    checker_options=(
        KindOption(flag="--lean", takes="folder", metavar="DIR", help="Toolchain folder; searched for unless given."),
    ),
    submit=(STATEMENT,),
)
