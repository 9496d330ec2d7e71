"""Kind `answer`: an answer that must say the same as the expected one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from verifiers.contract.kinds import IN_A_BOX, AnswerForm, Kind, KindOption, Lazy, SubmissionOption

ABOUT = (
    "Is this answer the same as the expected one? 0 yes, 1 no.\n\n"
    "Each line of --pairs has id, gold, prediction and optionally spec; a result has id, outcome, reason, seconds."
)
VARIABLE = KindOption(
    flag="--variable",
    sets_field="variables",
    takes="texts",
    metavar="NAME",
    help="An allowed symbol (default: those of --gold).",
)


def is_integer(spec: Any) -> bool:
    return bool(spec.notation == "digits")


def form(spec: Any) -> AnswerForm:
    """Returns the markup from which a final answer is extracted: WHOLE if the spec itself looks for the box. Otherwise
    BOXED."""
    return AnswerForm.WHOLE if spec.final == "boxed" else AnswerForm.BOXED


def asks_for(spec: Any) -> str:
    r"""Returns the prompt's sentence that asks for a `\boxed{}` answer."""
    return IN_A_BOX.replace(".", ", in digits.") if is_integer(spec) else IN_A_BOX


ANSWER = Kind(
    name="answer",
    about=ABOUT,
    spec=Lazy("verifiers.answers.spec:AnswerSpec"),
    verifier=Lazy("verifiers.answers.verifier:AnswerVerifier"),
    revision="11",
    tools=(("sympy", "sympy"),),
    preload="verifiers.answers",
    light=is_integer,
    explain=Lazy("verifiers.answers.explain:explain"),
    parts=Lazy("verifiers.answers.explain:parts"),
    examples=Lazy("verifiers.answers.examples:examples"),
    answer_form=form,
    asks_for=asks_for,
    solvers=Lazy("verifiers.proposals.in_worker:solvers"),
    proposers={"arithmetic": Lazy("verifiers.proposals.arithmetic:worked_out")},
    example='assay check answer --gold "x^2/2" --answer "0.5*x**2"',
    options=(
        KindOption(flag="--gold", sets_field="expected", metavar="TEXT", help="The expected answer."),
        KindOption(flag="--notation", help="any (default), plain or digits."),
        KindOption(
            flag="--boxed",
            sets_field="final",
            takes="nothing",
            sets="boxed",
            help="Take the answer from the text's only \\boxed{...}.",
        ),
        KindOption(flag="--form", help="equal, worked_out (default), simplified or same."),
        KindOption(flag="--absolute", metavar="NUMBER", help="Accept numbers and coefficients this close."),
        KindOption(flag="--relative", metavar="NUMBER", help="The same as a share of the expected value."),
        KindOption(
            flag="--any-order",
            sets_field="order",
            takes="nothing",
            sets="any",
            help="Accept a list in brackets in any order.",
        ),
        KindOption(flag="--units", help="as_expected (default), optional or ignored."),
        VARIABLE,
        KindOption(flag="--domain", help="Domain of symbols: real (default), complex, positive or integer."),
    ),
    submission=SubmissionOption(
        flag="--answer",
        takes="text",
        metavar="TEXT",
        help="The answer to check, `-` for standard input.",
        key="prediction",
    ),
    submit=(
        KindOption(
            flag="--expect", sets_field="expected", metavar="TEXT", help="The expected answer; the agent never sees it."
        ),
        replace(VARIABLE, help="Variable of --check (default: x), or an allowed symbol of --expect."),
    ),
    batch=16,
)
