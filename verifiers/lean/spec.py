"""What a proof is checked against."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from verifiers.contract.spec_data import SpecModel

ModuleName = Annotated[
    str, StringConstraints(pattern=r"\A[A-Za-z_][A-Za-z0-9_']*(\.[A-Za-z_][A-Za-z0-9_']*)*$", max_length=200)
]


class LeanSpec(SpecModel):
    """A trusted statement, compiled apart; the submission is a Lean file that proves it.

    `statement` is an ordinary Lean file: imports, `open`, `variable` and so on, definitions if there are any, and one
    theorem with `:= sorry` (or any proof, or none), which is the last one of the file:

        import Mathlib
        open Nat
        theorem target (n : ℕ) (h : 0 < n) : n ∣ n ! := sorry

    A submission proves a theorem of that full name. It may repeat of the file before the theorem what it likes, or
    leave that away; definitions of the statement are given to it compiled, and it cannot bring its own in their place.
    """

    kind: Literal["lean"] = "lean"
    statement: str = Field(max_length=200_000)
    imports: tuple[ModuleName, ...] = ()
    """Modules that a submission may import beside those of the statement and what lies below them."""
    require_replay: bool = False
    """Whether a pass needs every declaration of the submission checked a second time by a kernel that never ran it.
    Where this machine cannot, the verdict is `infra_error`."""
    seconds: float = Field(default=60.0, gt=0, le=3600)
    """Wall clock for the submission to compile, however much more the caller would give."""
    memory_mib: int = Field(default=4096, ge=256, le=262_144)
    heartbeats: int = Field(default=200_000, ge=1, le=10_000_000)
    """What `maxHeartbeats` may be at most, unless the statement itself sets more; a submission that sets more than that
    gets that, and one that sets none this."""
