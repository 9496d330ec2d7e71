"""The kind `smt`: a claim in SMT-LIB that solvers prove, given the submitted terms."""

from __future__ import annotations

from dataclasses import replace

from verifiers.contract.kinds import AnswerForm, Kind, KindOption, Lazy, SubmissionOption

CLAIM = KindOption(
    flag="--claim",
    takes="file",
    metavar="FILE",
    help="A claim for the SMT solvers, an SMT-LIB file.",
    read=Lazy("verifiers.smt.files:claim_spec"),
)
SMT = Kind(
    name="smt",
    about="Does this claim hold, with these terms? 0 when it is proved, 1 when it is not, or not known.",
    job="claim",
    spec=Lazy("verifiers.smt.spec:SmtSpec"),
    verifier=Lazy("verifiers.smt.verifier:SmtVerifier"),
    revision="4",
    tools=(("z3", "z3-solver"), ("cvc5", "cvc5")),
    preload="verifiers.smt",
    explain=Lazy("verifiers.smt.explain:explain"),
    parts=Lazy("verifiers.smt.explain:parts"),
    examples=Lazy("verifiers.smt.examples:examples"),
    answer_form=lambda _spec: AnswerForm.BLOCK,
    asks_for=lambda _spec: "End with what the claim asks for in one fenced code block.",
    question=Lazy("verifiers.smt.explain:question"),
    solvers=Lazy("verifiers.proposals.in_worker:solvers"),
    proposers={"z3": Lazy("verifiers.proposals.claims:by_z3")},
    suffix=".smt2",
    example="assay check smt --claim claim.smt2",
    visible=Lazy("verifiers.smt.explain:visible"),
    options=(
        replace(
            CLAIM, help="The claim, in SMT-LIB; `-` for standard input.", asked=Lazy("verifiers.smt.files:asked_in")
        ),
        KindOption(flag="--question", help="entails (unless given), model, optimum or equivalent."),
    ),
    submission=SubmissionOption(default=Lazy("verifiers.smt.files:default_submission")),
    submit=(CLAIM,),
    batch=4,
)
