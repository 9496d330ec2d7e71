"""Spec of the kind `answer`. The submission is always the text of the final answer."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from verifiers.contract.spec_data import SpecModel

INTEGER = re.compile(r"-?[0-9]{1,2000}", re.ASCII)


class AnswerSpec(SpecModel):
    """The answer says the same as `expected`: a number, expression, set, interval, tuple, equation, inequality, matrix,
    quantity with its unit, or text choice. Plain mathematics or LaTeX on both sides."""

    kind: Literal["answer"] = "answer"
    expected: str = Field(max_length=10_000)
    notation: Literal["any", "plain", "digits"] = "any"
    """Notation of both answers. `any`: plain mathematics or LaTeX. `plain`: one expression over `variables`, without
    guessing. `digits`: one integer, in decimal digits with at most a sign: `42`, `-7`, `+3`; not `42.0`."""
    final: Literal["whole", "boxed"] = "whole"
    r"""`whole`: the submission is the answer. `boxed`: the answer is in its single `\boxed{...}`."""
    form: Literal["equal", "worked_out", "simplified", "same"] = "worked_out"
    r"""`equal`: any form. `worked_out`: nothing is left to compute that the expected answer has computed. `simplified`:
    also fractions in lowest terms, radicals denested, like terms collected. `same`: written alike, apart from notation
    (`\frac{1}{2}` is `1/2`, and `0.5` is neither)."""
    absolute: str = Field(default="", max_length=64)
    """Accepted distance of a number or coefficient: a rational number, written exactly. Empty: none."""
    relative: str = Field(default="", max_length=64)
    """Accepted distance of a number or coefficient, as a share of the expected value."""
    order: Literal["as_written", "any"] = "as_written"
    """`any`: a list in brackets may come in another order. A list without brackets, or a set, always may."""
    units: Literal["as_expected", "optional", "ignored"] = "as_expected"
    """`as_expected`: a unit of the same dimension exactly if the expected answer has one, converted; dollars and
    counted things are not units. `optional`: the unit may be missing. `ignored`: units are dropped."""
    variables: tuple[str, ...] | None = None
    """Allowed symbols; None: those of the expected answer."""
    domain: Literal["real", "complex", "positive", "integer"] = "real"
    """Values of symbols: sqrt(x^2) is |x| for real ones, and x only for positive ones."""

    def summary(self) -> str:
        return f"{self.kind}: {self.expected}"

    @model_validator(mode="after")
    def _digits(self) -> AnswerSpec:
        if self.notation == "digits" and not INTEGER.fullmatch(self.expected):
            raise ValueError("`expected` is not an integer of at most 2,000 digits from 0 to 9")
        if (self.absolute or self.relative) and (self.notation == "digits" or self.form == "same"):
            raise ValueError(
                "`absolute`, `relative`: `notation` digits and `form` same compare exactly: leave the tolerance out"
            )
        return self

    @model_serializer(mode="wrap")
    def _omit_usual_notation(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omits the field `notation` from the serialized spec if it is `any`, the default."""
        data: dict[str, Any] = handler(self)
        if self.notation == "any":
            data.pop("notation", None)
        return data
