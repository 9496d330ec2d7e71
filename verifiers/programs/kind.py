"""The kind `program`: a program that must pass visible and hidden tests."""

from __future__ import annotations

from verifiers.contract.kinds import AnswerForm, Kind, KindOption, Lazy, always

PROGRAM = Kind(
    name="program",
    about=(
        "Does this program do what the tests ask for? 0 yes, 1 no.\n\n"
        "With --assess: do the tests tell right from wrong? The right program is the spec's reference, or --submission."
    ),
    job="program",
    spec=Lazy("verifiers.programs.spec:ProgramSpec"),
    verifier=Lazy("verifiers.programs.verifier:ProgramVerifier"),
    revision="7",
    seconds=60.0,
    runs=True,
    tests_decide=True,
    conducted=always,
    conductor=Lazy("verifiers.programs.verifier:conductor"),
    check=Lazy("verifiers.programs.checking:check"),
    probe="pass",
    explain=Lazy("verifiers.programs.explain:explain"),
    parts=Lazy("verifiers.programs.explain:parts"),
    examples=Lazy("verifiers.programs.examples:examples"),
    examples_at_once=4,
    answer_form=lambda _spec: AnswerForm.BLOCK,
    asks_for=lambda _spec: "End with the whole program in one fenced code block.",
    question=Lazy("verifiers.programs.explain:question"),
    solvers=Lazy("verifiers.programs.solvers:solvers"),
    suffix=".py",
    assess=Lazy("verifiers.programs.mutation:assess_in"),
    example="assay check code --spec median.toml --submission median.py",
    visible=Lazy("verifiers.programs.explain:visible"),
    command="code",
    spec_file=Lazy("verifiers.programs.files:spec_of_toml"),
    spec_table=Lazy("verifiers.programs.files:spec_of_table"),
    submit=(
        KindOption(
            flag="--spec",
            takes="file",
            metavar="SPEC.toml",
            help="A program's tests, as for `assay check code`; or any spec.",
        ),
    ),
)
