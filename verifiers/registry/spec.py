"""Pydantic type of a spec: the data that a submission is checked against. The agent never sees a spec.

A spec is plain data with a `kind`: it can be stored, hashed, bundled and checked again by someone else.
`verifiers.registry` lists the kinds. The class of a spec is imported when the first spec of its kind is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import PlainValidator, TypeAdapter
from pydantic_core import PydanticCustomError

from verifiers.contract.spec_data import SpecModel
from verifiers.registry import KINDS, kind_named

__all__ = ["SPEC", "Spec", "SpecModel"]


def read_spec(value: Any) -> SpecModel:
    """Returns a spec from a spec or its data. Raises ValidationError for invalid data."""
    if isinstance(value, SpecModel):
        return value
    name = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(name, str):
        raise PydanticCustomError("no_kind", "a spec needs a kind")
    try:
        kind = kind_named(name)
    except KeyError:
        known = ", ".join(KINDS)
        raise PydanticCustomError("unknown_kind", "unknown kind: use one of {known}", {"known": known}) from None
    found: SpecModel = kind.spec.load().model_validate(value)
    return found


if TYPE_CHECKING:
    Spec = SpecModel
else:
    Spec = Annotated[Any, PlainValidator(read_spec)]
SPEC: TypeAdapter[SpecModel] = TypeAdapter(Spec)
"""Validates a spec from JSON or from a dictionary."""
