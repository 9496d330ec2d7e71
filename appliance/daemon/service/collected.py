"""Offers the owner's verified jobs and judged gateway sessions as candidate tasks.

Invariants, enforced by types: a row is made only of a `PassedJob` or a `PassedSession`, which require a verdict that
passed; clients choose among candidates, never their content. Jobs are considered only if the policy in force says
`[data] jobs_as_tasks`. Rows are only offered here; `assay curriculum collect` checks each and leaves out sealed ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from appliance.client.messages import OwnTasksetView
from appliance.client.own_tasks import JOBS, SESSIONS, CollectedRows, TaskCandidate
from appliance.daemon.contract import RequestError
from appliance.daemon.service.gateway_tokens import GatewayDesk
from appliance.daemon.service.own_work import OwnWork
from appliance.gateway.sessions import PassedSession
from appliance.jobs.lifecycle import JobFiles
from appliance.ledger.ledger import Ledger
from appliance.records.jobs import Artifact, Job, JobState
from curriculum.own.rows import OwnRow
from policies.policy import Policy
from runtime.errors import InfrastructureError
from verifiers.contract.kinds import AnswerForm
from verifiers.registry import kind_of

LOOKED_AT = 1_000
"""Newest jobs examined."""
MOST_FILE_CHARS = 200_000
"""Maximum characters of all files of a task together."""


@dataclass(frozen=True)
class PassedJob:
    """A job with a passed answer, a check that a task can have, and its files as text."""

    job: Job
    answer: str
    files: dict[str, str]


def passed_job(job: Job, artifact: Artifact, files: dict[str, bytes]) -> PassedJob | None:
    """Returns the job as material for a task. None without a passed verdict, for a replay, for a check that a person
    rejected or that judges a world, and for files that are binary or too large."""
    if not artifact.verdict.passed or job.state is not JobState.SOLVED or job.replay_of is not None:
        return None
    if job.validation is not None and job.validation.verdict == "not_meant":
        return None
    if kind_of(job.spec).answer_form(job.spec) is AnswerForm.WORLD:
        return None
    try:
        texts = {name: content.decode() for name, content in files.items()}
    except UnicodeDecodeError:
        return None
    if sum(map(len, texts.values())) > MOST_FILE_CHARS:
        return None
    return PassedJob(job, artifact.answer, texts)


def row_of(passed: PassedJob | PassedSession) -> OwnRow | None:
    """Makes a task of a passed job or gateway session, with its origin; None if the question is too long for a task."""
    try:
        if isinstance(passed, PassedSession):
            return OwnRow(
                question=passed.question, spec=passed.spec, answer=passed.submission, origin=f"session {passed.id}"
            )
        job = passed.job
        return OwnRow(
            question=job.question,
            spec=job.spec,
            answer=passed.answer,
            origin=f"job {job.id}, {job.solved_by or 'policy model'}",
            files=passed.files,
        )
    except ValidationError:
        return None


@dataclass(frozen=True)
class CollectedWork:
    """Offers the owner's passed jobs and gateway sessions as candidate tasks, and collects them; thread-safe."""

    ledger: Ledger
    files: JobFiles
    gateway: GatewayDesk
    own: OwnWork
    policy: Callable[[], Policy]

    def candidates(self) -> list[TaskCandidate]:
        """Returns the passed jobs and sessions, as candidate tasks, that were neither collected nor refused before."""
        found: list[TaskCandidate] = []
        known = self.own.decided_keys()
        for taskset, row in self._rows():
            if row.key not in known:
                known.add(row.key)
                found.append(TaskCandidate(taskset=taskset, row=row))
        return found

    def collect(self, collected: CollectedRows) -> OwnTasksetView:
        """Adds the chosen candidate tasks to the owner's taskset, and remembers refused ones. Raises RequestError for
        an unknown key, and what `OwnWork.collect` raises."""
        offered = {one.row.key: one.row for one in self.candidates() if one.taskset == collected.taskset}
        unknown = [key for key in (*collected.keys, *collected.refused) if key not in offered]
        if unknown:
            raise RequestError(
                f"no candidate task has the key {unknown[0][:80]!r}",
                hint="`assay curriculum collect` fetches the candidates again",
            )
        rows = [offered[key] for key in dict.fromkeys(collected.keys)]
        return self.own.collect(collected.taskset, rows, collected.refused)

    def _rows(self) -> Iterator[tuple[str, OwnRow]]:
        for session in self.gateway.passed():
            if (row := row_of(session)) is not None:
                yield SESSIONS, row
        if not self.policy().data.jobs_as_tasks:
            return
        for artifact in self.ledger.artifacts(LOOKED_AT):
            job = self.ledger.job(artifact.job)
            if job is None:
                continue
            try:
                passed = passed_job(job, artifact, self.files.read(job))
            except InfrastructureError:
                continue  # its files, and so its question, are gone
            row = row_of(passed) if passed is not None else None
            if row is not None:
                yield JOBS, row
