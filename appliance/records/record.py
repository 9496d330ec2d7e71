"""Every record is frozen, closed to unknown fields, and has a digest over its JSON."""

from __future__ import annotations

import hashlib
from typing import Any

from pydantic import ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from runtime.model import FrozenModel


class Record(FrozenModel):
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Has a list or table of a record given up at its first wrong item: a list of all that is wrong with what a
        stranger sends would be a thousand times larger than it."""
        schema = handler(source)
        _fail_fast(schema)
        return schema

    def digest(self) -> str:
        """Computes SHA-256 over the record's JSON, in the order of declaration: equal records have equal digests."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


class FiniteRecord(Record):
    """Has finite numbers only: JSON, in which it is kept, has no others."""

    model_config = ConfigDict(allow_inf_nan=False)


def _fail_fast(schema: Any) -> None:
    if isinstance(schema, dict):
        for inner in schema.values():
            _fail_fast(inner)
        if schema.get("type") in ("list", "tuple", "dict"):
            schema["fail_fast"] = True
    elif isinstance(schema, list):
        for inner in schema:
            _fail_fast(inner)


def renamed(data: Any, **names: str) -> Any:
    """Returns a record's fields as they came in, those of earlier versions (old=new) under the name of today, where
    that is not there itself."""
    if not isinstance(data, dict) or not names.keys() & data.keys():
        return data
    earlier = {names[name]: value for name, value in data.items() if name in names}
    return earlier | {name: value for name, value in data.items() if name not in names}
