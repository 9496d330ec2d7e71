"""How many examples a property is tried on, in the suite and at night."""

from __future__ import annotations

import hypothesis

QUICK = 15
"""Examples in the suite, where a test names no number of its own."""
FROM_STRANGERS = 100
"""Examples in the suite for what reads bytes or text of a stranger."""


def register() -> None:
    """Registers the profiles `quick` (the suite) and `nightly` (`--hypothesis-profile=nightly`)."""
    # What takes long on a busy machine is no fault of what is tested.
    checks = [hypothesis.HealthCheck.too_slow]
    hypothesis.settings.register_profile("nightly", deadline=None, suppress_health_check=checks)
    hypothesis.settings.register_profile("quick", deadline=None, suppress_health_check=checks, max_examples=QUICK)


def examples(nightly: int, *, quick: int = QUICK) -> int:
    """Returns `nightly`, and in every other profile `quick` if that is less."""
    if hypothesis.settings.get_current_profile_name() == "nightly":
        return nightly
    return min(nightly, quick)
