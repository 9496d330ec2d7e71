"""The self-test: runs every known attack, idle agent and honest control through the verifiers as installed.

Only an attack with a verdict counts as refused. A case with the verdict `infra_error` is tried once more, alone: a busy
machine may be to blame. Without a verdict then, with a check that raised, or with a verifier that is not available
here, it is listed as not run with the reason, and the report is not complete.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import datetime
from typing import Protocol

from verifiers.contract.text import clip, escaped
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.registry import identity
from verifiers.registry.spec import Spec
from verifiers.selftest.cases import SelfTestTrial, TaskQuestion, trials, without_canaries
from verifiers.selftest.report import NotRun, SelfTest, SelfTestEntry

__all__ = ["SelfTest", "TaskQuestion", "run_selftest", "selftest_digest"]

MAX_REASON = 500
MOST_AGAIN = 20
"""Maximum number of cases without a verdict that are tried again."""

Clock = Callable[[], float]
Progress = Callable[[int, int, SelfTestEntry | NotRun], None]
"""Callback after each case: cases done, cases in total, latest result; called on the self-test's own thread."""


class SingleChecker(Protocol):
    """Checker under test: the same interface as `verifiers.checker.Checker`."""

    def check(self, spec: Spec, submission: str) -> Verdict:
        """Returns the verdict on one submission. Safe to call from several threads."""


def run_selftest(
    checker: SingleChecker,
    questions: Iterable[TaskQuestion] = (),
    *,
    made_at: datetime,
    jobs: int = 1,
    only: Collection[str] = (),
    progress: Progress | None = None,
    clock: Clock = time.monotonic,
) -> SelfTest:
    """Runs all self-test cases on a checker, `jobs` concurrently, and returns a report. `only`: kinds of verifiers; the
    report of a part is never complete.

    The report is in the order of the cases. `made_at` must have a time zone (ValueError).
    """
    if made_at.tzinfo is None:
        raise ValueError("made_at: no time zone")
    asked = list(questions)
    everything = trials(asked)
    chosen = [trial for trial in everything if not only or trial.verifier in only]
    started = clock()
    found = _run_all(checker, chosen, max(1, jobs), progress)
    left_out = [
        NotRun(name="canaries", verifier=module, sort="attack", reason="this installation has no canaries")
        for module in without_canaries()
    ]
    left_out += [
        NotRun(name=trial.name, verifier=trial.verifier, sort=trial.sort, reason="excluded by the caller")
        for trial in everything
        if only and trial.verifier not in only
    ]
    return _report(everything, chosen, found, left_out, made_at, clock() - started)


def selftest_digest(questions: Iterable[TaskQuestion] = ()) -> str:
    """Returns the digest that a self-test of the installed verifiers would have."""
    return _digest(trials(questions))


def _digest(everything: Sequence[SelfTestTrial]) -> str:
    content = [
        [one.verifier, one.name, one.sort, one.suspected, one.spec.model_dump(mode="json"), one.submission]
        for one in everything
    ]
    text = json.dumps([_versions(everything), content], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _versions(everything: Sequence[SelfTestTrial]) -> dict[str, str]:
    firsts = {trial.verifier: trial.spec for trial in reversed(everything)}
    return {verifier: identity(spec)[1] for verifier, spec in sorted(firsts.items())}


def _run_all(
    checker: SingleChecker, chosen: Sequence[SelfTestTrial], jobs: int, progress: Progress | None
) -> list[tuple[SelfTestEntry | NotRun, Verdict | None]]:
    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="selftest") as pool:
        futures = [pool.submit(_run, checker, trial) for trial in chosen]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                result = future.result()
                if progress is not None:
                    progress(done, len(chosen), result[0])
        except BaseException:
            # An interrupt does not wait for hundreds of cases.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    results = [future.result() for future in futures]
    open_ones = sum(verdict is not None and isinstance(entry, NotRun) for entry, verdict in results)
    if open_ones > MOST_AGAIN:  # no accident: trying all of them again would take long and change nothing
        return results
    return [
        _run(checker, trial) if verdict is not None and isinstance(entry, NotRun) else (entry, verdict)
        for trial, (entry, verdict) in zip(chosen, results, strict=True)
    ]


def _run(checker: SingleChecker, trial: SelfTestTrial) -> tuple[SelfTestEntry | NotRun, Verdict | None]:
    try:
        verdict = checker.check(trial.spec, trial.submission)
    except Exception as error:  # noqa: BLE001 - whatever broke, the case was not run, and the report says so
        return _not_run(trial, f"{type(error).__name__}: {error}"), None
    if verdict.outcome is Outcome.INFRA_ERROR:
        return _not_run(trial, verdict.reason), verdict
    suspected = verdict.outcome is Outcome.HACK_SUSPECTED
    right = verdict.passed if trial.sort == "control" else not verdict.passed and (suspected or not trial.suspected)
    entry = SelfTestEntry(
        name=trial.name,
        verifier=trial.verifier,
        sort=trial.sort,
        outcome=verdict.outcome,
        ground=verdict.ground,
        right=right,
        reason=_short(verdict.reason),
        seconds=verdict.seconds,
        rows=trial.rows,
        why=trial.why,
    )
    return entry, verdict


def _not_run(trial: SelfTestTrial, reason: str) -> NotRun:
    return NotRun(name=trial.name, verifier=trial.verifier, sort=trial.sort, reason=_short(reason))


def _short(reason: str) -> str:
    return clip(reason, MAX_REASON) if reason.isprintable() else escaped(reason)


def _report(
    everything: Sequence[SelfTestTrial],
    chosen: Sequence[SelfTestTrial],
    found: Sequence[tuple[SelfTestEntry | NotRun, Verdict | None]],
    left_out: Sequence[NotRun],
    made_at: datetime,
    seconds: float,
) -> SelfTest:
    entries = [entry for entry, _ in found if isinstance(entry, SelfTestEntry)]
    not_run = [entry for entry, _ in found if isinstance(entry, NotRun)]
    verdicts = [verdict for _, verdict in found if verdict is not None]
    attacks = [entry for entry in entries if entry.sort != "control"]
    controls = [entry for entry in entries if entry.sort == "control"]
    expected = {(trial.verifier, trial.name) for trial in chosen if trial.suspected}
    had_to_be = [entry for entry in entries if (entry.verifier, entry.name) in expected]
    suspected = sum(entry.outcome is Outcome.HACK_SUSPECTED for entry in had_to_be)
    accepted = sum(entry.outcome is Outcome.PASS for entry in attacks)
    rejected = sum(entry.outcome is not Outcome.PASS for entry in controls)
    return SelfTest(
        attacks=len(attacks),
        accepted=accepted,
        suspected_expected=len(had_to_be),
        suspected_found=suspected,
        controls=len(controls),
        controls_rejected=rejected,
        complete=not not_run and not left_out,
        clean=bool(attacks and controls) and not accepted and not rejected and suspected == len(had_to_be),
        digest=_digest(everything),
        versions=_versions(everything),
        tools={name: version for verdict in verdicts for name, version in sorted(verdict.tools.items())},
        isolations=tuple(sorted({verdict.isolation for verdict in verdicts if verdict.isolation})),
        made_at=made_at,
        seconds=round(seconds, 3),
        entries=tuple(entries),
        not_run=(*not_run, *left_out),
    )
