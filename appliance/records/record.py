"""Every record is frozen, closed to unknown fields, and has a digest over its JSON."""

from __future__ import annotations

import hashlib
from typing import Any

from runtime.model import FrozenModel


class Record(FrozenModel):
    def digest(self) -> str:
        """Computes SHA-256 over the record's JSON, in the order of declaration: equal records have equal digests."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def renamed(data: Any, **names: str) -> Any:
    """Returns a record's fields as they came in, those of earlier versions (old=new) under the name of today."""
    if not isinstance(data, dict) or not names.keys() & data.keys():
        return data
    return {names.get(name, name): value for name, value in data.items()}
