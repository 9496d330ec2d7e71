"""Work on one job: independent attempts by the champion, each verified; the first verified one becomes a bundle.

What always holds. The spec never reaches the agent. Nothing is called solved without a `pass` of the spec's verifier on
the very text that goes into the bundle. Attempts do not see each other. A job whose infrastructure failed is `failed`,
not `unsolved`: nothing is said about the question then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from appliance.agent.dialect import Codec
from appliance.agent.judging import Checks, judge
from appliance.agent.loop import Agent, Assignment
from appliance.agent.transcript import transcript
from appliance.audit.machine_keys import load_or_make
from appliance.isolation import tier_of
from appliance.jobs.bundle import write_bundle
from appliance.jobs.seal import write_seal
from appliance.ledger.ledger import Ledger
from appliance.records import Artifact, Ended, Job, JobState, Judged, Purpose, Rollout
from curriculum.task import Split, Task
from policies.envelopes import Signer
from policies.policy import Policy
from runtime.sandbox import SessionPool
from verifiers.verdict import Outcome

SHOWN_ATTEMPTS = 12
"""Distinct failures that an unsolved job lists."""


def task_of(job: Job) -> Task:
    """The job as the agent meets it: the question alone."""
    return Task(
        family="job",
        level=0,
        seed=job.seed,
        split=Split.JOB,
        prompt=job.question,
        spec=job.spec,
        provenance=f"job:{job.id}",
    )


def attempts(job: Job, *, temperature: float, derive: Callable[..., int], policy: Policy) -> list[Assignment]:
    task = task_of(job)
    return [
        Assignment(
            id=f"{job.id}.{sample}",
            task=task.id,
            prompt=job.question,
            cycle=job.id,
            step=0,
            sample=sample,
            purpose=Purpose.JOB,
            temperature=temperature,
            seed=derive("job", job.id, job.seed, sample),
            tier=tier_of(policy, Purpose.JOB, task.family),
        )
        for sample in range(job.attempts)
    ]


WAITS = "waits for the first model in service: `assay cycle start`"


def _go_on() -> str:
    return ""


def _tell_nobody(step: str, tries_done: int) -> None:
    pass


class Solver:
    """Works on jobs with one loaded champion, or with none: then what needs a model stays queued."""

    def __init__(
        self,
        agent: Agent | None,
        codec: Codec | None,
        checker: Checks,
        ledger: Ledger,
        data: Path,
        versions: dict[str, Any],
        now: Callable[[], str],
        *,
        sessions: SessionPool | None = None,
    ) -> None:
        """`sessions` are for solvers that put something to work in a sandbox."""
        self._agent = agent
        self._codec = codec
        self._checker = checker
        self._ledger = ledger
        self._data = data
        self._versions = versions
        self._now = now
        self._sessions = sessions

    def solve(
        self,
        job: Job,
        assignments: Sequence[Assignment],
        *,
        keep_on: Callable[[], str] = _go_on,
        say: Callable[[str, int], None] = _tell_nobody,
    ) -> Job:
        """Tries, verifies, records. Returns the job as it ended, or as it waits for a model; one that was stopped is
        returned as it ended and not written.

        `keep_on` says why to stop, in a sentence, or nothing; `say` hears of each step, with the tries that ended."""
        known = self._ledger.artifact(job.id)
        if known is not None:
            # A kill came between the artifact's record and the job's: the work is done.
            return self._end(job, JobState.SOLVED, "verified before the daemon was stopped", artifact=known.id)
        tasks = {task.id: task for task in [task_of(job)]}
        judged: list[Judged] = []

        def verify(rollout: Rollout) -> bool:
            judged.extend(judge([rollout], tasks, self._checker))
            return judged[-1].verdict.passed

        if self._agent is None or self._codec is None:
            return self._ledger.put_job(
                job.model_copy(
                    update={"state": JobState.QUEUED, "solvers_done": True, "reason": WAITS, "updated": self._now()}
                )
            )

        def finished(rollout: Rollout) -> bool:
            found = verify(rollout)
            say(f"attempt {len(judged)} of {len(assignments)}", len(judged))
            return found or bool(keep_on())

        say(f"attempt 1 of {len(assignments)}", 0)
        self._agent.roll(assignments, finished)
        self._ledger.put_rollouts(judged)
        solved = next((one for one in judged if one.verdict.passed), None)
        if solved is not None:
            artifact = self._bundle(job, solved, judged)
            reason = f"verified on attempt {judged.index(solved) + 1} of {len(judged)}"
            return self._end(job, JobState.SOLVED, reason, artifact=artifact.id)
        stopped = keep_on()
        if stopped:
            # Not written: what follows from a stop is for who asked for it to say.
            return _ended(job, JobState.UNSOLVED, stopped, self._now(), tried=tried(judged))
        broken = sum(one.verdict.outcome is Outcome.INFRA_ERROR for one in judged)
        if broken == len(judged):
            return self._end(job, JobState.FAILED, "every attempt met a failure of the infrastructure: `assay doctor`")
        reason = f"none of {len(judged) - broken} attempts was verified"
        return self._end(job, JobState.UNSOLVED, reason, tried=tried(judged))

    def _bundle(self, job: Job, solved: Judged, judged: Sequence[Judged]) -> Artifact:
        """The bundle on disk first, then its record: a kill in between leaves a bundle that the next try finds."""
        folder = self._data / "artifacts" / job.id
        answer = solved.rollout.answer
        assert answer is not None
        assert self._codec is not None
        manifest = write_bundle(
            folder,
            answer=answer,
            question=job.question,
            spec=job.spec,
            verdict=solved.verdict,
            transcript=transcript(solved.rollout, self._codec),
            versions={**self._versions, "attempts": len(judged), "weights": solved.rollout.weights},
        )
        write_seal(folder, Signer.of(load_or_make(self._data, "trainer")), made_at=self._now())
        artifact = Artifact(
            id=job.id,
            job=job.id,
            folder=f"artifacts/{job.id}",
            manifest=manifest,
            answer=answer,
            weights=solved.rollout.weights,
            verdict=solved.verdict,
            created=self._now(),
        )
        self._ledger.put_artifact(artifact)
        return artifact

    def _end(
        self, job: Job, state: JobState, reason: str, *, tried: Sequence[str] = (), artifact: str | None = None
    ) -> Job:
        return self._ledger.put_job(_ended(job, state, reason, self._now(), tried=tried, artifact=artifact))


def _ended(
    job: Job, state: JobState, reason: str, at: str, *, tried: Sequence[str] = (), artifact: str | None = None
) -> Job:
    update = {
        "state": state,
        "reason": reason,
        "tried": tuple(tried),
        "artifact": artifact,
        "step": "",
        "updated": at,
    }
    return job.model_copy(update=update)


def tried(judged: Sequence[Judged]) -> list[str]:
    """The distinct ways in which attempts failed, the commonest first, with counts. Holds hostile text."""
    counts: dict[str, int] = {}
    for one in judged:
        answer = f"{one.rollout.answer!r}: " if one.rollout.ended is Ended.ANSWERED and one.rollout.answer else ""
        line = f"{answer}{one.verdict.reason}"
        counts[line] = counts.get(line, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    return [f"{count}x {line}" for line, count in ranked[:SHOWN_ATTEMPTS]]
