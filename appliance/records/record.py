"""Base class of records: frozen, closed to unknown fields, with a digest over the JSON."""

from __future__ import annotations

import hashlib
from typing import Any

from pydantic import ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from runtime.model import FrozenModel


class Record(FrozenModel):
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Stops validating a list or table at its first wrong item. Hostile input could otherwise yield an error list a
        thousand times its size."""
        schema = handler(source)
        _fail_fast(schema)
        return schema

    def digest(self) -> str:
        """Returns the SHA-256 of the record's JSON in declaration order: equal records have equal digests."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


class FiniteRecord(Record):
    """A record without NaN and infinity, which JSON cannot represent."""

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
