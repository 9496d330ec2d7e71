"""Where `assay check` has submissions held: at the broker that runs, at one of its own as root, or in a process that
confines itself, which is said.

What always holds: what runs a submission (programs, proofs) needs a broker; only what reads it does without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue

import typer

from verifiers.spec import Spec
from verifiers.verdict import Outcome, Verdict
from verifiers.workers.service import VerifierService


class Services:
    def __init__(self, services: Sequence[VerifierService]) -> None:
        self._free: SimpleQueue[VerifierService] = SimpleQueue()
        for service in services:
            self._free.put(service)

    def check(self, spec: Spec, submission: str, *, seconds: float) -> Verdict:
        return self.check_many([(spec, submission)], seconds=seconds)[0]

    def check_many(self, pairs: Sequence[tuple[Spec, str]], *, seconds: float) -> list[Verdict]:
        service = self._free.get()
        try:
            return service.verify_many(pairs, seconds)
        finally:
            self._free.put(service)


class Place:
    def __init__(self) -> None:
        self._said = False

    @contextmanager
    def checker(self, *, jobs: int) -> Iterator[Services]:
        with ExitStack() as stack:
            yield Services([stack.enter_context(VerifierService()) for _ in range(jobs)])

    def say_isolation(self, verdict: Verdict) -> None:
        """Once, when there is no sandbox around what decides."""
        if verdict.isolation == "process" and not self._said and verdict.outcome is not Outcome.INFRA_ERROR:
            self._said = True
            typer.echo("held in a process that confines itself: no broker runs here", err=True)


def place_for(context: typer.Context, data: Path | None, kind: str) -> Place:
    return Place()
