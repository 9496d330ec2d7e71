"""What is asked of the agent where a person gave only what the answer is checked against. Pure.

The agent sees the question and nothing of the check. A claim and a theorem are their own question; of a program's tests
only those examples are told that its spec calls visible.
"""

from __future__ import annotations

from verifiers.spec import ChecklistSpec, LeanSpec, ProgramSpec, SmtSpec, Spec

_ASKED_OF_CLAIMS = {
    "entails": "Do the assumptions of this claim imply its goal? Say the one word `entailed` if they do.",
    "model": "Give a value to everything that this script declares, so that every assertion is true of them.",
    "optimum": "Give a value to everything that this script declares: every assertion is true, and nothing is better.",
    "equivalent": "Give another term that has the value of the definition `{reference}` wherever the assertions hold.",
}
_WITH_HOLES = "Define {holes} with `define-fun`, so that the assumptions of this claim imply its goal."


def question_for(spec: Spec, question: str | None) -> str | None:
    """The question that goes with a spec; None where a person has to say it."""
    match spec:
        case ProgramSpec():
            return None if question is None else "\n\n".join([question, *_shown(spec)])
        case _ if question is not None:
            return question
        case SmtSpec():
            asked = _WITH_HOLES if spec.question == "entails" and spec.holes else _ASKED_OF_CLAIMS[spec.question]
            said = asked.format(holes=", ".join(f"`{name}`" for name in spec.holes), reference=spec.reference)
            return f"{said} The language is SMT-LIB.\n\n{spec.claim.strip()}"
        case LeanSpec():
            return f"Prove this in Lean 4.\n\n{spec.statement.strip()}"
        case ChecklistSpec():
            return spec.question or None
        case _:
            return None


def _shown(spec: ProgramSpec) -> list[str]:
    said = [f"The program is in {spec.language}." if not spec.function else f"It defines `{spec.function}`."]
    examples = [example for example in spec.examples if example.visible]
    runs = [run for run in spec.runs if run.visible]
    lines = [
        f"{spec.function}({example.arguments}) "
        + (f"raises {example.raises}" if example.raises else f"is {example.expected}")
        for example in examples
    ]
    lines += [f"input {run.stdin!r} prints {run.expected!r}" for run in runs]
    return said + (["Examples:\n" + "\n".join(lines)] if lines else [])
