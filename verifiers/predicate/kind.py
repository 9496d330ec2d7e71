"""Kind `predicate`: any value that makes a condition true; no known answer is needed."""

from __future__ import annotations

from verifiers.contract.kinds import Kind, KindOption, Lazy, SubmissionOption

CONDITION = KindOption(
    flag="--check",
    sets_field="predicate",
    metavar="TEXT",
    help='A predicate over the answer: "7*x+3 == 45". No known answer is needed.',
)
VARIABLE = KindOption(flag="--variable", metavar="NAME", help="Variable of --check for the answer (default: x).")
DOMAIN = KindOption(flag="--domain", help="Domain of the answer: integer, rational, real (default) or complex.")
PREDICATE = Kind(
    name="predicate",
    about="Does this value make the condition true? 0 yes, 1 no.",
    spec=Lazy("verifiers.predicate.spec:PredicateSpec"),
    verifier=Lazy("verifiers.predicate.verifier:PredicateVerifier"),
    revision="3",
    tools=(("sympy", "sympy"),),
    preload="verifiers.answers",
    explain=Lazy("verifiers.predicate.explain:explain"),
    parts=Lazy("verifiers.predicate.explain:parts"),
    examples=Lazy("verifiers.predicate.explain:examples"),
    solvers=Lazy("verifiers.proposals.in_worker:solvers"),
    proposers={
        "z3": Lazy("verifiers.proposals.whole_numbers:by_z3"),
        "sympy": Lazy("verifiers.proposals.roots:by_sympy"),
        "enumeration": Lazy("verifiers.proposals.numbers:enumerated"),
    },
    example='assay check predicate --check "7*x+3 == 45" --answer 6',
    visible=Lazy("verifiers.predicate.explain:visible"),
    options=(CONDITION, VARIABLE, DOMAIN),
    submission=SubmissionOption(
        flag="--answer", takes="text", metavar="TEXT", help="The value to check.", key="prediction"
    ),
    submit=(CONDITION, VARIABLE, DOMAIN),
)
