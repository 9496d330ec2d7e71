"""Kind `exact`: the answer must equal a given text."""

from __future__ import annotations

from verifiers.contract.kinds import Kind, KindOption, Lazy, SubmissionOption

EXACT = Kind(
    name="exact",
    about="Is this text the expected one, apart from surrounding white space? 0 yes, 1 no.",
    spec=Lazy("verifiers.exact.spec:ExactSpec"),
    verifier=Lazy("verifiers.exact.verifier:ExactVerifier"),
    revision="1",
    explain=Lazy("verifiers.exact.explain:explain"),
    parts=Lazy("verifiers.exact.explain:parts"),
    examples=Lazy("verifiers.exact.explain:examples"),
    solvers=Lazy("verifiers.proposals.in_worker:solvers"),
    proposers={"arithmetic": Lazy("verifiers.proposals.arithmetic:worked_out")},
    example="assay check exact --gold yes --answer yes",
    options=(KindOption(flag="--gold", sets_field="expected", metavar="TEXT", help="The expected text."),),
    submission=SubmissionOption(
        flag="--answer", takes="text", metavar="TEXT", help="The text to check.", key="prediction"
    ),
)
