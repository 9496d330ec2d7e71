"""Spec of the kind `lean`: a trusted statement."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from verifiers.contract.spec_data import SpecModel

ModuleName = Annotated[
    str, StringConstraints(pattern=r"\A[A-Za-z_][A-Za-z0-9_']*(\.[A-Za-z_][A-Za-z0-9_']*)*$", max_length=200)
]


class LeanSpec(SpecModel):
    """A trusted statement, compiled separately; the submission is a Lean file that proves it.

    `statement` is an ordinary Lean file: imports, `open`, `variable` and so on, optional definitions, and one theorem
    with `:= sorry` (or any proof, or none), which is the last one of the file:

        import Mathlib
        open Nat
        theorem target (n : ℕ) (h : 0 < n) : n ∣ n ! := sorry

    A submission proves a theorem of that full name. It may repeat any part of the file before the theorem, or omit it;
    the statement's definitions are provided compiled, and it cannot substitute its own.
    """

    kind: Literal["lean"] = "lean"
    statement: str = Field(max_length=200_000)
    imports: tuple[ModuleName, ...] = ()
    """Modules that a submission may import, beside those of the statement and their submodules."""
    require_replay: bool = False
    """True if a pass requires that a kernel which never ran the submission checks every declaration again. Without a
    replay on this machine, the verdict is `infra_error`."""
    kernels: Literal[1, 2] = Field(default=1, exclude_if=lambda kernels: kernels == 1)
    """Kernels that must accept a proof: Lean's, and with 2 also an independent one that the machine's owner installed.
    Without one, or if the two disagree, the verdict is `infra_error`."""
    seconds: float = Field(default=60.0, gt=0, le=3600)
    """Time limit for the submission to compile, in seconds; also caps a larger limit of the caller."""
    memory_mib: int = Field(default=4096, ge=256, le=262_144)
    heartbeats: int = Field(default=200_000, ge=1, le=10_000_000)
    """Value of `maxHeartbeats` for a submission that sets none, and its maximum unless the statement sets more. Larger
    values are capped."""
