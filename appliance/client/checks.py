"""Explains a job's check to whoever shows a job."""

from __future__ import annotations

from functools import lru_cache

from verifiers.contract.errors import SpecError
from verifiers.registry import kind_of
from verifiers.registry.spec import Spec


@lru_cache(maxsize=256)
def explain_check(spec: Spec) -> tuple[str, ...]:
    """The check in one line, and then line by line, as its kind explains it; hostile text, to be escaped."""
    kind = kind_of(spec)
    try:
        return spec.summary(), *kind.explain.load()(spec)
    except SpecError as error:
        return kind.name, f"it cannot be used: {error}"
