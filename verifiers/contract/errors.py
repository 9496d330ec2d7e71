"""Errors of verification, raised only for unusable specs.

An unreadable submission fails: that is a verdict, never an exception. Each error carries `hint`, a sentence for the
author of the spec.
"""

from __future__ import annotations

from common.errors import HintedError


class SpecError(HintedError):
    """Spec that cannot decide anything, or would accept everything."""

    exit_code = 2
