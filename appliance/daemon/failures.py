"""From an exception to what a client is told. Errors of this house carry `hint`; anything else was not foreseen."""

from __future__ import annotations

from appliance.client.messages import Failure
from appliance.errors import exit_code

_STATUS = {2: 400, 4: 409, 5: 500}


def failure_of(error: Exception) -> Failure | None:
    """None for an error that nobody foresaw."""
    hint = getattr(error, "hint", None)
    if not isinstance(hint, str):
        return None
    return Failure(message=str(error), hint=hint, exit_code=int(exit_code(error)))


def http_status(failure: Failure) -> int:
    return _STATUS.get(failure.exit_code, 500)
