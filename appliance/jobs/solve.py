"""Work on one job: cheap solvers first, then independent attempts by the champion; the first verified text becomes a
bundle, which says who found it.

What always holds. The spec never reaches the agent. Nothing is called solved without a `pass` of the spec's verifier on
the very text that goes into the bundle, whoever proposed it. Attempts do not see each other, nor what solvers tried. A
job whose infrastructure failed is `failed`, not `unsolved`: nothing is said about the question then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from appliance.agent.answers import form_of
from appliance.agent.asking import prompt_of
from appliance.agent.branching import Branching
from appliance.agent.dialect import Codec
from appliance.agent.judging import judge
from appliance.agent.loop import Agent, Assignment
from appliance.agent.transcript import transcript
from appliance.audit.machine_keys import load_or_make
from appliance.isolation import tier_of
from appliance.jobs.bundle import write_bundle
from appliance.jobs.format import BundleError
from appliance.jobs.interrupted import already_solved
from appliance.jobs.job_bytes import job_bytes
from appliance.jobs.seal import write_seal
from appliance.jobs.solvers import solvers_for
from appliance.jobs.solvers.solver import Desk
from appliance.jobs.statement import statement
from appliance.jobs.trying import Round, Try, try_solvers
from appliance.jobs.versions import answered_with
from appliance.ledger.ledger import Ledger
from appliance.records import Artifact, Ended, Job, JobState, Judged, Purpose, Rollout
from curriculum.task import Split, Task
from policies.envelopes import Signer
from policies.policy import Policy
from runtime.errors import InfrastructureError
from runtime.sandbox import SessionPool
from verifiers.verdict import Outcome, Verdict

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


def attempts(
    job: Job, *, temperature: float, derive: Callable[..., int], policy: Policy, first: int = 0
) -> list[Assignment]:
    """`first` is the number of the first one: after those that other weights made until they were taken out of service,
    so that both are on record."""
    task = task_of(job)
    return [
        Assignment(
            id=f"{job.id}.{sample}",
            task=task.id,
            prompt=prompt_of(job),
            cycle=job.id,
            step=0,
            sample=sample,
            purpose=Purpose.JOB,
            temperature=temperature,
            seed=derive("job", job.id, job.seed, sample),
            tier=tier_of(policy, Purpose.JOB, task.family),
            form=form_of(job),
        )
        for sample in range(first, first + job.attempts)
    ]


WAITS = "waits for the first model in service: `assay cycle start`"


def _go_on() -> str:
    return ""


def _tell_nobody(step: str, tries_done: int) -> None:
    pass


POLICY_MODEL = "policy model"


@dataclass(frozen=True)
class Answer:
    """What goes into a bundle."""

    text: str
    verdict: Verdict
    by: str
    weights: str
    """Empty where no model was asked."""
    transcript: Sequence[Mapping[str, Any]]


class Solver:
    """Works on jobs with one loaded champion, or with none: then what needs a model stays queued."""

    def __init__(
        self,
        agent: Agent | None,
        codec: Codec | None,
        checker: Desk,
        ledger: Ledger,
        data: Path,
        versions: dict[str, Any],
        now: Callable[[], str],
        *,
        sessions: SessionPool | None = None,
        branches: int = 0,
    ) -> None:
        """`sessions` are for solvers that put something to work in a sandbox; `branches` is how many an attempt may
        have."""
        self._agent = agent
        self._codec = codec
        self._checker = checker
        self._ledger = ledger
        self._data = data
        self._versions = versions
        self._now = now
        self._sessions = sessions
        self._branches = branches

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
        try:
            return self._solved(job, assignments, keep_on, say)
        except BundleError as error:
            return self._end(job, JobState.FAILED, f"verified, but no bundle can be made of it: {error} ({error.hint})")

    def _solved(
        self, job: Job, assignments: Sequence[Assignment], keep_on: Callable[[], str], say: Callable[[str, int], None]
    ) -> Job:
        done = already_solved(job, self._ledger, self._now())
        if done is not None:
            return self._ledger.put_job(done)
        try:
            files = job_bytes(job, self._data)
        except InfrastructureError as error:
            return self._end(job, JobState.FAILED, f"{error}: {error.hint}", tried=job.tried)
        before, tries = job.tried, 0
        if not job.solvers_done:
            first = try_solvers(
                job,
                solvers_for(job),
                self._checker,
                self._sessions,
                files,
                keep_on=keep_on,
                say=say,
                clock=time.monotonic,
            )
            before, tries = first.lines, len(first.tries)
            job = job.model_copy(update={"solvers_done": True, "tries_done": tries})
            settled = self._settled(job, first, files)
            if settled is not None:
                return settled
        if stopped := keep_on():
            # Not written: what follows from a stop is for who asked for it to say.
            return _ended(job, JobState.UNSOLVED, stopped, self._now(), tried=before)
        if self._agent is None or self._codec is None:
            return self._ledger.put_job(_ended(job, JobState.QUEUED, WAITS, self._now(), tried=before))
        given = [replace(each, files=files) for each in assignments] if files else assignments
        return self._attempted(job, given, before, tries, files, keep_on=keep_on, say=say)

    def _settled(self, job: Job, first: Round, files: Mapping[str, bytes]) -> Job | None:
        """The job as the solvers' round ended it; None where it goes on. It says nothing about any weights then."""
        job = job.model_copy(update={"weights": ""})
        if first.solved is not None:
            proposal, verdict = first.solved
            said: list[dict[str, Any]] = [
                {"parent": None, "role": "user", "text": job.question, "sampled": False},
                {"parent": 0, "role": "assistant", "text": proposal.text, "sampled": False},
            ]
            answer = Answer(proposal.text, verdict, proposal.by, "", said)
            artifact = self._bundle(job, answer, files, {"proposals": len(first.tries)})
            reason = f"verified: {proposal.by} found it, proposal {_place(first, first.solved)} of {len(first.tries)}"
            solved = job.model_copy(update={"solved_by": proposal.by})
            return self._end(solved, JobState.SOLVED, reason, artifact=artifact.id)
        if first.unusable:
            reason = f"nothing can be verified against this check: {first.unusable}"
            return self._end(job, JobState.FAILED, reason, tried=first.lines)
        if first.nothing_decided:
            return self._end(job, JobState.FAILED, f"nothing can be verified here: {first.broken}", tried=first.lines)
        if first.hopeless:
            return self._end(job, JobState.UNSOLVED, f"there is no answer: {first.hopeless}", tried=first.lines)
        if first.undecided:
            reason = f"not decided, and there is nothing else to answer: {first.undecided}"
            return self._end(job, JobState.UNSOLVED, reason, tried=first.lines)
        return None

    def _attempted(
        self,
        job: Job,
        assignments: Sequence[Assignment],
        before: Sequence[str],
        tries: int,
        files: Mapping[str, bytes],
        *,
        keep_on: Callable[[], str],
        say: Callable[[str, int], None],
    ) -> Job:
        """The policy model's part. `before` and `tries` are the solvers'."""
        assert self._agent is not None
        assert self._codec is not None
        tasks = {task.id: task for task in [task_of(job)]}
        judged: list[Judged] = []

        def finished(rollout: Rollout) -> bool:
            judged.extend(judge([rollout], tasks, self._checker))
            tally = tally_of(judged)
            said = f", {tally.branches_said}" if tally.branches else ""
            say(f"attempt {tally.attempts} of {len(assignments)}{said}", tries + len(judged))
            return judged[-1].verdict.passed or bool(keep_on())

        say(f"attempt 1 of {len(assignments)}", tries)
        branching = Branching(each=self._branches, in_all=len(assignments))
        self._agent.roll(assignments, finished, keep_on=keep_on, branching=branching)
        self._ledger.put_rollouts(judged)
        job = job.model_copy(update={"tries_done": tries + len(judged)})
        all_tried = [*before, *tried(judged)]
        solved = next((one for one in judged if one.verdict.passed), None)
        if solved is not None:
            text, rollout = solved.rollout.answer or "", solved.rollout
            answer = Answer(text, solved.verdict, POLICY_MODEL, rollout.weights, transcript(rollout, self._codec))
            tally = tally_of(judged)
            counts = {"attempts": tally.attempts} | ({"branches": tally.branches} if tally.branches else {})
            artifact = self._bundle(job, answer, files, counts)
            where = "a branch, try" if rollout.branch_of else "try" if tally.branches else "attempt"
            reason = f"verified on {where} {judged.index(solved) + 1} of {len(judged)}"
            done = job.model_copy(update={"solved_by": POLICY_MODEL})
            return self._end(done, JobState.SOLVED, reason, artifact=artifact.id)
        if stopped := keep_on():
            return _ended(job, JobState.UNSOLVED, stopped, self._now(), tried=all_tried)
        broken = sum(one.verdict.outcome is Outcome.INFRA_ERROR for one in judged)
        if broken == len(judged):
            reason = "every attempt met a failure of the infrastructure: `assay doctor`"
            return self._end(job, JobState.FAILED, reason, tried=all_tried)
        whole = tally_of([one for one in judged if one.verdict.outcome is not Outcome.INFRA_ERROR])
        reason = f"none of {whole.said} was verified"
        return self._end(job, JobState.UNSOLVED, reason, tried=all_tried)

    def _bundle(self, job: Job, answer: Answer, files: Mapping[str, bytes], counts: Mapping[str, int]) -> Artifact:
        """The bundle on disk first, then its record: a kill in between leaves a bundle that the next try finds."""
        folder = self._data / "artifacts" / job.id
        stored = self._ledger.job(job.id) or job  # a person's word may have come meanwhile
        claims = statement(stored, answer.verdict)
        manifest = write_bundle(
            folder,
            answer=answer.text,
            question=job.question,
            spec=job.spec,
            verdict=answer.verdict,
            transcript=answer.transcript,
            versions=answered_with({**self._versions, **counts}, answer.weights),
            files=files,
            statement=claims,
            solved_by=answer.by,
            meaning=stored.meaning,
        )
        write_seal(folder, Signer.of(load_or_make(self._data, "trainer")), made_at=self._now())
        artifact = Artifact(
            id=job.id,
            job=job.id,
            folder=f"artifacts/{job.id}",
            manifest=manifest,
            answer=answer.text,
            weights=answer.weights,
            verdict=answer.verdict,
            solved_by=answer.by,
            statement=claims,
            created=self._now(),
        )
        self._ledger.put_artifact(artifact)
        return artifact

    def _end(
        self, job: Job, state: JobState, reason: str, *, tried: Sequence[str] = (), artifact: str | None = None
    ) -> Job:
        return self._ledger.put_job(_ended(job, state, reason, self._now(), tried=tried, artifact=artifact))


@dataclass(frozen=True)
class Tally:
    """What was tried, branches apart: they are not independent of the attempts that they left."""

    attempts: int
    branches: int

    @property
    def branches_said(self) -> str:
        return f"{self.branches} {'branch' if self.branches == 1 else 'branches'}"

    @property
    def said(self) -> str:
        attempts = f"{self.attempts} {'attempt' if self.attempts == 1 else 'attempts'}"
        return f"{attempts} and {self.branches_said}" if self.branches else attempts


def tally_of(judged: Sequence[Judged]) -> Tally:
    branches = sum(one.rollout.branch_of is not None for one in judged)
    return Tally(len(judged) - branches, branches)


def _place(first: Round, solved: Try) -> int:
    """Which of the proposals it was, from 1."""
    return first.tries.index(solved) + 1


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
