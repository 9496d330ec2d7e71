"""Errors in a written policy, with hints."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from common.errors import HintedError


class PolicyError(HintedError):
    """Unusable policy file: the message gives place and reason, `hint` the remedy."""

    exit_code = 2


def require_known(names: Iterable[str], known: Collection[str], where: str, what: str) -> None:
    """Raises PolicyError if a policy rule names something unknown, and would thus protect nothing. `where` is the place
    in the file, `what` the kind of thing named."""
    unknown = sorted(set(names).difference(known))
    if unknown:
        raise PolicyError(
            f"{where}: unknown {what} {unknown[0]!r}",
            hint=f"correct it to one of {', '.join(sorted(known))}, or remove it",
        )
