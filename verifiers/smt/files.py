"""Claim files: from a file to a spec and, if the claim leaves nothing to supply, to the default submission.

The file is the claim itself. It may contain the question too, so that no other file is needed:

    (set-info :assay-question entails)    ; or model, optimum, equivalent
    (set-info :assay-holes "inv rank")    ; names separated by spaces, as in `SmtSpec`; also -uses, -forbidden, -allowed
    (set-info :assay-goal safety)         ; also -reference, -division, -second, -copies, -proof, -max-size, -effort

Without a question it is an optimum if something is minimised or maximised, an equivalence if `reference` is defined,
and else an entailment: the goal is the assertion named `goal`, or the negation of the last assertion.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from verifiers.contract.errors import SpecError
from verifiers.contract.text import escaped
from verifiers.smt.language.errors import ClaimError
from verifiers.smt.language.script import SmtClaim, read_text
from verifiers.smt.questions import ENTAILED
from verifiers.smt.spec import SmtSpec

PREFIX = "assay-"
FIELDS = {name.replace("_", "-"): name for name in SmtSpec.model_fields if name not in ("kind", "claim")}
LISTS, NUMBERS = ("holes", "uses", "allowed", "forbidden"), ("max_size", "effort")


def claim_spec(text: str, _folder: Path = Path()) -> SmtSpec:
    """Parses the text of a claim file into a spec. Raises SpecError with a hint."""
    claim = _read(text)
    given: dict[str, Any] = {"question": _question(claim), **_asked(claim)}
    try:
        return SmtSpec(claim=text, **given)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise SpecError(f"assay-{name}: {first['msg']}", hint="See the fields of `SmtSpec`.") from None


def asked_in(text: str) -> dict[str, Any]:
    """Returns the spec fields that a claim's text sets by `set-info`; empty if none. Raises SpecError with a hint."""
    return _asked(_read(text)) if f":{PREFIX}" in text else {}


def default_submission(spec: SmtSpec) -> str | None:
    """Returns the fixed submission for an SMT claim without holes to fill; None if a real one is needed."""
    return ENTAILED if spec.question == "entails" and not spec.holes else None


def _read(text: str) -> SmtClaim:
    try:
        return read_text(text)
    except ClaimError as error:
        raise SpecError(
            f"the claim cannot be used: {error}",
            hint="Only declarations, definitions, assertions and check-sat: leave out options, output and (exit).",
        ) from None


def _question(claim: SmtClaim) -> str:
    if claim.objective is not None:
        return "optimum"
    return "equivalent" if "reference" in claim.names.definitions else "entails"


def _asked(claim: SmtClaim) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for keyword, value in claim.info.items():
        if not keyword.startswith(PREFIX):
            continue
        field = FIELDS.get(keyword.removeprefix(PREFIX))
        if field is None:
            raise SpecError(
                f"unknown keyword :{escaped(keyword)}",
                hint=f"Use one of: {', '.join(PREFIX + name for name in FIELDS)}.",
            )
        try:
            found[field] = value.split() if field in LISTS else int(value) if field in NUMBERS else value
        except ValueError:
            raise SpecError(f":{keyword} is not a whole number", hint="Write it in digits.") from None
    return found
