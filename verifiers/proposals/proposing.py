"""Which ways there are for which spec, and the door through which the worker's hand goes.

What always holds: a way reads the question and what a spec asks for, and never an answer that a spec names. It comes to
an end by its own clock where it can; the hand that it runs in is killed where it cannot.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import cast

from verifiers.errors import SpecError
from verifiers.proposals.found import Found
from verifiers.spec import AnswerSpec, ExactSpec, ExpressionSpec, IntegerSpec, PredicateSpec, SmtSpec, Spec

Way = Callable[[Spec, str, Callable[[], bool]], Found]
"""Spec, question, and whether there is still time."""

WAYS: dict[type[object], dict[str, tuple[str, str]]] = {
    PredicateSpec: {
        "z3": ("verifiers.proposals.whole_numbers", "by_z3"),
        "sympy": ("verifiers.proposals.roots", "by_sympy"),
        "enumeration": ("verifiers.proposals.numbers", "enumerated"),
    },
    SmtSpec: {"z3": ("verifiers.proposals.claims", "by_z3")},
    **{
        kind: {"arithmetic": ("verifiers.proposals.arithmetic", "worked_out")}
        for kind in (IntegerSpec, ExactSpec, ExpressionSpec, AnswerSpec)
    },
}
"""By spec: the ways, those that tell most first, and where each is."""


def ways(spec: Spec) -> tuple[str, ...]:
    return tuple(WAYS.get(type(spec), ()))


def propose(spec: Spec, way: str, question: str, seconds: float) -> Found:
    """In this process: only the worker calls it. Raises SpecError where there is no such way, or a spec is bad."""
    known = WAYS.get(type(spec), {})
    if way not in known:
        raise SpecError(f"there is no way {way!r} to propose answers for {spec.kind}")
    module, name = known[way]
    made = cast(Way, getattr(importlib.import_module(module), name))
    end = time.monotonic() + seconds
    return made(spec, question, lambda: time.monotonic() < end)
