"""Kind `checklist`: a text that has everything on a list."""

from __future__ import annotations

from typing import Any

from verifiers.contract.kinds import AnswerForm, Kind, KindOption, Lazy


def judged(spec: Any) -> bool:
    """True if the spec has items that a model must grade."""
    return bool(spec.soft)


CHECKLIST = Kind(
    name="checklist",
    about=(
        "Does this text have everything on the list? 0 yes, 1 no.\n\n"
        "With --assess: is the list sound? A text that meets it may be given as --submission."
    ),
    job="text",
    spec=Lazy("verifiers.checklists.spec:ChecklistSpec"),
    verifier=Lazy("verifiers.checklists.hard:HardVerifier"),
    revision="12",
    tests_decide=True,
    seconds=10.0,
    preload="verifiers.checklists",
    conducted=judged,
    conductor=Lazy("verifiers.checklists.verifier:conductor"),
    explain=Lazy("verifiers.checklists.explain:explain"),
    parts=Lazy("verifiers.checklists.explain:parts"),
    examples=Lazy("verifiers.checklists.examples:examples"),
    answer_form=lambda _spec: AnswerForm.WHOLE,
    asks_for=lambda _spec: "Your last turn is the text, and nothing else.",
    question=Lazy("verifiers.checklists.explain:question"),
    solvers=Lazy("verifiers.checklists.solvers:solvers"),
    suffix=".md",
    assess=Lazy("verifiers.checklists.assess:assess"),
    example="assay check checklist --spec list.toml --submission text.md",
    visible=Lazy("verifiers.checklists.explain:visible"),
    checker_options=(
        KindOption(flag="--judge", takes="folder", metavar="DIR", help="Folder of the model that grades soft items."),
    ),
    spec_file=Lazy("verifiers.checklists.files:checklist_from"),
    submit=(
        KindOption(
            flag="--checklist",
            sets_field="spec",
            takes="file",
            metavar="FILE",
            help="The checklist, as TOML or JSON.",
            read=Lazy("verifiers.checklists.files:checklist_from"),
        ),
    ),
    batch=4,
)
