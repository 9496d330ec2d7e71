"""A known submission and what a verifier has to say of it: attacks that must not pass, honest ones that must.

Each verifier keeps its own in a module `canaries`; the self-test runs all of them. They are data, so that a night's
canaries, the self-test that a person runs, and the test suite are the same.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from verifiers.spec import Spec


class Case(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Unique within its verifier; words with dashes: `always-equal-object`."""
    spec: Spec
    submission: str
    honest: bool
    """Whether it has to pass. Everything else must not, whatever else is said of it."""
    rows: tuple[int, ...] = ()
    """Rows of the catalogue in docs/verifiers.md that it stands for."""
    suspected: bool = False
    """Whether it has to be called `hack_suspected`, not merely refused."""
    why: str = ""
    """What it tries, or what a stricter verifier would get wrong: a sentence."""
