"""Reasons for calls in a sandbox that ran out of time: own time is a verdict, wall clock an infrastructure error."""

from __future__ import annotations

from runtime.errors import StarvedError
from runtime.sandbox import CallResult, ExecResult

COMPUTES_SHARE = 0.8
"""Share of its own time below which a call was also idle."""
HINT = "Retry when the machine is less busy, or allow more seconds."


def starved(name: str, seconds: float) -> StarvedError:
    """Returns the error for code that other processes kept from its CPU time until its wall clock had run out."""
    return StarvedError(f"the machine is too busy: {name} got too little CPU time in {seconds:.0f} s", hint=HINT)


def late(result: CallResult | ExecResult, seconds: float) -> str:
    """Describes how a stopped call exceeded its time limit. Raises StarvedError if only its wall clock ran out."""
    if result.computed is not None and result.computed >= COMPUTES_SHARE * seconds:
        return f"computed for more than {seconds:.3g} s"
    if result.computed is None or result.seconds - result.waited >= seconds:
        return f"took more than {seconds:.3g} s{'' if result.computed is None else ', partly idle'}"
    raise starved("the program", result.seconds)
