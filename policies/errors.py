"""What is wrong with a written policy, and what to do about it."""

from __future__ import annotations

from collections.abc import Collection, Iterable


class PolicyError(Exception):
    """The policy file cannot be used; the message says where and why, and `hint` what to do."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def require_known(names: Iterable[str], known: Collection[str], where: str, what: str) -> None:
    """Raises PolicyError for a rule about something that does not exist: it would protect nothing. `where` is the
    place in the file, and `what` the sort of thing."""
    unknown = sorted(set(names).difference(known))
    if unknown:
        raise PolicyError(
            f"{where}: there is no {what} {unknown[0]!r}",
            hint=f"correct it to one of {', '.join(sorted(known))}, or remove it",
        )
