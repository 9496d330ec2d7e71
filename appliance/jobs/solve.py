"""Works on one job: cheap solvers first, then independent attempts by the champion, until one text is verified.

Invariants: the spec never reaches the agent. A job is solved only by a `pass` of the spec's verifier on the very text
that goes into the bundle, whoever proposed it. Attempts see neither each other nor the solvers' tries. A job whose
infrastructure failed is `failed`, not `unsolved`: this says nothing about the question.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from appliance.agent.assignment import Assignment, tier_of
from appliance.agent.branching import Branching
from appliance.agent.judging import judge
from appliance.agent.loop import Agent
from appliance.agent.texts import task_of, transcript
from appliance.audit.machine_keys import load_or_make
from appliance.jobs.attestation import write_seal
from appliance.jobs.bundle import write_bundle
from appliance.jobs.layout import BundleError
from appliance.jobs.lifecycle import GAVE_WAY, WAITS, WAITS_FOR_MODEL, JobFiles, already_solved
from appliance.jobs.results import step_result, tally_of, tokens_left, tried
from appliance.jobs.solver_round import SolverRound, solvers_for, try_solvers, with_hint
from appliance.jobs.spending import MOST_TESTED, Experience, next_step
from appliance.jobs.statement import statement
from appliance.jobs.versions import answered_with
from appliance.ledger.ledger import Ledger, LedgerError
from appliance.promotion.evidence import CHAMPION
from appliance.records.jobs import Artifact, Job, JobState, JobStep
from appliance.records.rollouts import Purpose, Rollout
from appliance.records.training import Judged, RolloutFilter
from appliance.rendering.renderer import Renderer
from policies.envelopes import Signer
from policies.policy import Policy
from runtime.errors import InfrastructureError
from runtime.sandbox import SessionPool
from verifiers.contract.protocols import SolverChecker
from verifiers.contract.verdict import Outcome, SpecProblem, Verdict
from verifiers.registry import kind_of

MOST_JOBS = 1_000
"""Maximum number of earlier jobs from which the choice of attempts learns."""
MOST_MADE = 10_000
"""Maximum number of recorded tries read per job; more than any job has."""


def attempts(
    job: Job, *, temperature: float, derive: Callable[..., int], policy: Policy, first: int = 0
) -> list[Assignment]:
    """Returns the policy model's attempts at a job, to be made. `first` numbers the first one, after those of weights
    that were taken out of service, so that both are recorded."""
    task = task_of(job)
    return [
        Assignment(
            id=f"{job.id}.{sample}",
            task=task,
            cycle=job.id,
            step=0,
            sample=sample,
            purpose=Purpose.JOB,
            temperature=temperature,
            seed=derive("job", job.id, job.seed, sample),
            tier=tier_of(policy, Purpose.JOB, task.taskset),
        )
        for sample in range(first, first + job.attempts)
    ]


POLICY_MODEL = "policy model"
UNUSABLE = "the spec is refused, nothing can be verified against it"


@dataclass(frozen=True)
class FoundAnswer:
    """A job's verified answer, with the rest of what its bundle needs."""

    text: str
    verdict: Verdict
    by: str
    weights: str
    """Digest of the weights; empty if no model was asked."""
    transcript: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class JobSolver:
    """Works on jobs with one loaded champion; without one, jobs that need a model stay queued."""

    agent: Agent | None
    renderer: Renderer | None
    checker: SolverChecker
    ledger: Ledger
    data: Path
    versions: dict[str, Any]
    now: Callable[[], str]
    sessions: SessionPool | None = None
    """Sandbox sessions for solvers that run programs."""
    branches: int = 0
    """Maximum number of branches per attempt."""

    def solve(
        self,
        job: Job,
        assignments: Sequence[Assignment],
        *,
        stop_reason: Callable[[], str] = lambda: "",
        say: Callable[[str, int], None] = lambda step, tries_done: None,
        gives_way: Callable[[], bool] = lambda: False,
        keep: Callable[[Sequence[JobStep]], None] = lambda steps: None,
    ) -> Job:
        """Works on a job with solvers, then with the model, until an answer is verified; writes the bundle and records
        the end. Returns the job as it ended; a job that waits for a model, was stopped, or was preempted is returned
        without being written.

        `stop_reason` returns why to stop, or nothing; `say` receives each step and the number of finished tries;
        `gives_way` is called after each attempt: finished attempts are recorded, and the next work on the job makes the
        others; `keep` receives the steps so far whenever one is chosen or ends. Raises InfrastructureError if the
        solvers broke and no model is available: another worker repeats the job.
        """
        done = already_solved(job, self.ledger, self.now())
        if done is not None:
            return self.ledger.put_job(done)
        try:
            files = JobFiles(self.data).read(job)
        except InfrastructureError as error:
            return self._end(job, JobState.FAILED, f"{error}: {error.hint}", tried=job.tried)
        if unusable := self._unusable(job):
            return self._end(job.model_copy(update={"weights": ""}), JobState.FAILED, f"{UNUSABLE}: {unusable}")
        before, tries, broken = job.tried, 0, ""
        if not job.solvers_done:
            first = try_solvers(
                job,
                solvers_for(job),
                self.checker,
                self.sessions,
                files,
                stop_reason=stop_reason,
                say=say,
                clock=time.monotonic,
            )
            before, tries, broken = first.lines, len(first.tries), first.broken if first.cut_short else ""
            job = job.model_copy(update={"tries_done": tries})
            settled = self._settled(job.model_copy(update={"solvers_done": True}), first, files)
            if settled is not None:
                return settled
        if stopped := stop_reason():
            # Not written: whoever requested the stop decides on the job. Stopped solvers are not
            # done: they start again.
            return _ended(job, JobState.UNSOLVED, stopped, self.now(), tried=before)
        job = job.model_copy(update={"solvers_done": True})
        if self.agent is None or self.renderer is None:
            if broken:
                raise InfrastructureError(f"the solvers did not finish: {broken}", hint="try it again")
            # Not written: recording it would wake the model's worker, which takes the lease.
            waits = WAITS if self.ledger.alias(CHAMPION) is None else WAITS_FOR_MODEL
            return _ended(job, JobState.QUEUED, waits, self.now(), tried=before)
        given = [replace(each, files=files) for each in assignments] if files else assignments
        return self._attempted(
            job, given, before, tries, files, stop_reason=stop_reason, say=say, gives_way=gives_way, keep=keep
        )

    def _unusable(self, job: Job) -> str:
        """Returns the fault of a job's spec that only its verifier can detect; empty if none is known."""
        probe = kind_of(job.spec).probe
        found = self.checker.check_many([(job.spec, probe)])[0] if probe else None
        return with_hint(found.message, found.hint) if isinstance(found, SpecProblem) else ""

    def _settled(self, job: Job, first: SolverRound, files: Mapping[str, bytes]) -> Job | None:
        """Records the job's end if the solvers found an answer or showed that none exists, and returns it. None if work
        continues."""
        job = job.model_copy(update={"weights": ""})
        if first.solved is not None:
            proposal, verdict = first.solved
            nodes: list[dict[str, Any]] = [
                {"parent": None, "role": "user", "text": job.question, "sampled": False},
                {"parent": 0, "role": "assistant", "text": proposal.text, "sampled": False},
            ]
            answer = FoundAnswer(proposal.text, verdict, proposal.by, "", nodes)
            place = first.tries.index(first.solved) + 1
            reason = f"verified: {proposal.by} found it, proposal {place} of {len(first.tries)}"
            return self._solved(job, answer, files, {"proposals": len(first.tries)}, reason)
        if first.unusable:
            state, reason = JobState.FAILED, f"{UNUSABLE}: {first.unusable}"
        elif first.nothing_decided:
            state, reason = JobState.FAILED, f"nothing can be verified here: {first.broken}"
        elif first.hopeless:
            state, reason = JobState.UNSOLVED, f"there is no answer: {first.hopeless}"
        elif first.undecided:
            state, reason = JobState.UNSOLVED, f"not decided, and there is nothing else to answer: {first.undecided}"
        else:
            return None
        return self._end(job, state, reason, tried=first.lines)

    def _attempted(
        self,
        job: Job,
        assignments: Sequence[Assignment],
        before: Sequence[str],
        tries: int,
        files: Mapping[str, bytes],
        *,
        stop_reason: Callable[[], str],
        say: Callable[[str, int], None],
        gives_way: Callable[[], bool],
        keep: Callable[[Sequence[JobStep]], None],
    ) -> Job:
        """Runs and verifies the policy model's attempts at a job, step by step, records them, and returns the job as it
        ended. `before` and `tries` are the solvers' lines and count."""
        assert self.renderer is not None
        known = Experience.of(self.ledger.job_steps(job.spec.kind, MOST_JOBS), job.weights)
        judged, spent = self._made_before(job, assignments)
        first = assignments[0].sample if assignments else 0
        steps = [step for step in job.steps if step.weights == job.weights and step.first >= first]
        others = [step for step in job.steps if step not in steps]
        if steps and (steps[-1].passed or steps[-1].branches_passed):  # it was killed before its bundle was recorded
            steps[-1] = steps[-1].model_copy(update={"ended": False})
        why, solved = "", None
        if kind_of(job.spec).tests_decide and len(assignments) > MOST_TESTED:
            assignments, why = assignments[:MOST_TESTED], f"where tests decide, {MOST_TESTED} attempts are the most"
        while solved is None and not stop_reason():
            if not steps or steps[-1].ended:
                chosen = next_step(
                    known,
                    steps,
                    weights=job.weights,
                    attempts=job.attempts,
                    left=len(assignments) - sum(step.attempts for step in steps),
                    tokens=tokens_left(job, judged, spent),
                )
                if isinstance(chosen, str):
                    why = chosen or why
                    break
                begin = sum(step.attempts for step in steps)
                chosen = chosen.model_copy(
                    update={"first": assignments[begin].sample, "branches": chosen.branches and self.branches > 0}
                )
                steps.append(chosen)
                keep([*others, *steps])
            mine = slice(sum(step.attempts for step in steps[:-1]), sum(step.attempts for step in steps))
            self._make(
                job, assignments, mine, steps[-1].branches, judged, spent, tries,
                stop_reason=stop_reason, say=say, gives_way=gives_way,
            )  # fmt: skip
            solved = next((one for one in judged if one.verdict.passed), None)
            made = {one.rollout.id for one in judged}
            names = {one.id for one in assignments[mine]}
            ended = solved is not None or names <= made or tokens_left(job, judged, spent) == 0
            steps[-1] = step_result(steps[-1], judged, names, ended=ended)
            job = job.model_copy(update={"steps": (*others, *steps), "tries_done": tries + len(judged)})
            if solved is None:  # otherwise a kill before the bundle is recorded would end the step without it
                keep(job.steps)
            if solved is None and gives_way() and not stop_reason() and not {one.id for one in assignments} <= made:
                return _ended(job, JobState.QUEUED, GAVE_WAY, self.now(), tried=before)
        all_tried = [*before, *tried(judged)]
        if solved is not None:
            text, rollout = solved.rollout.answer or "", solved.rollout
            answer = FoundAnswer(
                text, solved.verdict, POLICY_MODEL, rollout.weights, transcript(rollout, self.renderer)
            )
            tally = tally_of(judged)
            counts = {"attempts": tally.attempts} | ({"branches": tally.branches} if tally.branches else {})
            where = "a branch, try" if rollout.branch_of else "try" if tally.branches else "attempt"
            reason = f"verified on {where} {judged.index(solved) + 1} of {len(judged)}"
            return self._solved(job, answer, files, counts, reason)
        if stopped := stop_reason():
            return _ended(job, JobState.UNSOLVED, stopped, self.now(), tried=all_tried)
        broken = sum(one.verdict.outcome is Outcome.INFRA_ERROR for one in judged)
        if judged and broken == len(judged):
            reason = "every attempt met a failure of the infrastructure: `assay doctor`"
            return self._end(job, JobState.FAILED, reason, tried=all_tried)
        whole = tally_of([one for one in judged if one.verdict.outcome is not Outcome.INFRA_ERROR])
        reason = f"none of {whole.summary} was verified" + (f"; {why}" if why else "")
        return self._end(job, JobState.UNSOLVED, reason, tried=all_tried)

    def _make(
        self,
        job: Job,
        assignments: Sequence[Assignment],
        mine: slice,
        branches: bool,
        judged: list[Judged],
        spent: int,
        tries: int,
        *,
        stop_reason: Callable[[], str],
        say: Callable[[str, int], None],
        gives_way: Callable[[], bool],
    ) -> None:
        """Makes the attempts of one step, `mine` of all, that are not in `judged` yet; records them and adds them there
        with their branches. `spent` are tokens of the job's other rollouts."""
        assert self.agent is not None
        tasks = {task.id: task for task in [task_of(job)]}
        known = len(judged)
        made = {one.rollout.id for one in judged}
        left = [one for one in assignments[mine] if one.id not in made]

        def finished(rollout: Rollout) -> bool:
            judged.extend(judge([rollout], tasks, self.checker))
            tally = tally_of(judged)
            tail = f", {tally.branches_summary}" if tally.branches else ""
            say(f"attempt {tally.attempts} of {len(assignments)}{tail}", tries + len(judged))
            return (
                judged[-1].verdict.passed or bool(stop_reason()) or gives_way() or tokens_left(job, judged, spent) == 0
            )

        if left and tokens_left(job, judged, spent) != 0:
            say(f"attempt {tally_of(judged).attempts + 1} of {len(assignments)}", tries + len(judged))
            branching = Branching(
                each=self.branches if branches else 0,
                in_all=max(0, len(assignments) - tally_of(judged).branches),
                behind=max(one.sample for one in assignments) + 1,
            )
            self.agent.roll(left, finished, stop_reason=stop_reason, branching=branching)
        self.ledger.put_rollouts(judged[known:])

    def _made_before(self, job: Job, assignments: Sequence[Assignment]) -> tuple[list[Judged], int]:
        """Returns the recorded attempts at a job, with these weights, from before it was preempted, and the tokens
        sampled in all its other rollouts.

        A passed attempt, or one whose branch passed, is left out: it is made and verified again.
        """
        first = min((one.sample for one in assignments), default=0)
        known = self.ledger.rollouts(RolloutFilter(job=job.id), limit=MOST_MADE)
        again = {one.rollout.branch_of or one.rollout.id for one in known if one.verdict.passed}
        mine = [
            one
            for one in reversed(known)
            if one.rollout.weights in ("", job.weights)  # without a sampled token, no weights are recorded
            and one.rollout.sample >= first
            and not {one.rollout.id, one.rollout.branch_of} & again
        ]
        tokens = sum(one.rollout.sampled_tokens for one in known) - sum(one.rollout.sampled_tokens for one in mine)
        return mine, tokens

    def _solved(
        self, job: Job, answer: FoundAnswer, files: Mapping[str, bytes], counts: Mapping[str, int], reason: str
    ) -> Job:
        if (known := self._over(job)) is not None:
            return known
        try:
            artifact = self._bundle(job, answer, files, counts)
        except BundleError as error:
            return self._end(job, JobState.FAILED, f"verified, but no bundle can be made of it: {error} ({error.hint})")
        except LedgerError:
            if (known := self._over(job)) is None:
                raise
            if known.artifact is None:
                shutil.rmtree(self.data / "artifacts" / job.id, ignore_errors=True)
            return known
        done = job.model_copy(update={"solved_by": answer.by})
        return self._end(done, JobState.SOLVED, reason, artifact=artifact.id)

    def _over(self, job: Job) -> Job | None:
        """Returns the job as recorded if it has ended meanwhile, by a person or its deadline, otherwise None."""
        known = self.ledger.job(job.id)
        return known if known is not None and known.state.ended else None

    def _bundle(self, job: Job, answer: FoundAnswer, files: Mapping[str, bytes], counts: Mapping[str, int]) -> Artifact:
        """Writes a verified answer's bundle and seal, then its record, and returns that. A kill in between leaves a
        bundle for the next try to replace."""
        folder = self.data / "artifacts" / job.id
        stored = self.ledger.job(job.id) or job  # a person's validation may have come meanwhile
        claims = statement(stored, answer.verdict)
        manifest = write_bundle(
            folder,
            answer=answer.text,
            question=job.question,
            spec=job.spec,
            verdict=answer.verdict,
            transcript=answer.transcript,
            versions=answered_with({**self.versions, **counts}, answer.weights),
            files=files,
            statement=claims,
            solved_by=answer.by,
            meaning=stored.validation,
        )
        write_seal(folder, Signer.of(load_or_make(self.data, "trainer")), made_at=self.now())
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
            created=self.now(),
        )
        self.ledger.put_artifact(artifact)
        return artifact

    def _end(
        self, job: Job, state: JobState, reason: str, *, tried: Sequence[str] = (), artifact: str | None = None
    ) -> Job:
        return self.ledger.put_job(_ended(job, state, reason, self.now(), tried=tried, artifact=artifact))


def _ended(
    job: Job, state: JobState, reason: str, at: str, *, tried: Sequence[str] = (), artifact: str | None = None
) -> Job:
    update = {"state": state, "reason": reason, "tried": tuple(tried), "artifact": artifact, "step": "", "updated": at}
    return job.model_copy(update=update)
