"""What can go wrong in verification, and who has to act.

A submission that cannot be read has failed: that is a verdict, never an exception. Exceptions are for specs that cannot
be used, and they carry `hint`, a sentence for the person who wrote the spec.
"""

from __future__ import annotations

from runtime.errors import HintedError


class SpecError(HintedError):
    """This spec cannot decide anything, or would accept everything."""

    exit_code = 2
