"""Plain description of a checklist, item by item; and the statement parts its verdict covers. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from verifiers.checklists.spec import ChecklistSpec, Unreadable
from verifiers.contract.statement import Assurance, StatementPart, Verified, decided, not_covered
from verifiers.contract.text import one_line
from verifiers.contract.verdict import Verdict

MOST_ITEMS = 100
"""Maximum number of items that become statement parts."""
GUARDS = {
    "repetition": "repetition",
    "stuffing": "keywords without sentences",
    "copy": "a copy of the task",
    "claims": "sentences in which the text speaks about itself",
}


def explain(spec: ChecklistSpec) -> Iterator[str]:
    yield "The text must meet all of these; code decides:"
    for item in spec.hard:
        first, *more = item.lines()
        yield f"    {item.name}: {first}"
        yield from (f"        {line}" for line in more)
    if spec.credit == "items":
        yield "A text that misses some fails, and scores the share that it meets, by the items' weights."
    if spec.soft:
        yield "A model judge may grade these; its grades are opinions:"
        yield from (f"    {item.name}: {item.point}" for item in spec.soft)
        if spec.soft_needed:
            yield f"    a mean grade below {spec.soft_needed:g} of 1 makes the text fail"
        yield f"    they are {spec.soft_share:.0%} of the score, and never make a text pass"
    for source in spec.sources:
        what = f", {source.url}" if source.url else ""
        yield f"It may cite [{source.key}]{what}, a text of {len(source.text)} characters."
    refused = [text for name, text in GUARDS.items() if name not in spec.allows]
    admitted = ", ".join(name for name in get_args(Unreadable) if name in spec.allows)
    if spec.question:
        yield "The question, which a model judge sees and a text must not copy:"
        yield from (f"    {line}" for line in spec.question.splitlines())
    yield f"It must be readable: nothing that a page does not show{f', apart from {admitted}' if admitted else ''}."
    if refused:
        yield f"Not counted: {', '.join(refused)}."
    yield "Truth, and quality beyond this list, are not checked."


def visible(spec: ChecklistSpec) -> str:
    return spec.question


def question(spec: ChecklistSpec, asked: str | None) -> str | None:
    return asked if asked is not None else spec.question or None


def parts(spec: ChecklistSpec, verdict: Verdict) -> Verified:
    claims = [
        decided(verdict, f"that the item {one_line(item.name)!r} holds of the text") for item in spec.hard[:MOST_ITEMS]
    ]
    soft = verdict.evidence.get("soft")
    found = [one for one in soft if isinstance(one, dict)] if isinstance(soft, list) else []
    graded = {str(one.get("name")): one.get("grade") for one in found}
    needed = spec.soft_needed > 0
    limits: list[StatementPart] = []
    for item in spec.soft:
        what = f"that {one_line(item.point)}"
        grade = next((graded[name] for name in (item.name, one_line(item.name)) if name in graded), None)
        if isinstance(grade, int | float):
            by = f"a model judge, grade {grade:g} of 1"
            claim = StatementPart(part=what, standing=Assurance.JUDGED, by=by, needed=needed)
        else:
            claim = not_covered(what, "no model judged it", needed=needed)
        (claims if needed else limits).append(claim)
    limits.append(not_covered("that what the text says is true, and all that no item covers", "no verifier reads it"))
    return Verified(claims, limits)
