"""Runs `assay check`: one submission, or a file of pairs, through the verifiers.

Invariants: a run over a file keeps its results however it ends, and says how to continue. An infrastructure error or an
unusable spec is never reported as a failed submission. A continued run checks pairs without a verdict, in file order.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import typer

from appliance import __version__
from appliance.cli.check.options import (
    CheckRun,
    fields_in,
    key_option,
    missing,
    require_fields,
    require_pairs_or_one,
    require_toolchain,
    spec_of,
    submission_of,
)
from appliance.cli.check.pairs import PairItem, PairsFile
from appliance.cli.check.results import Results
from appliance.cli.check.show import (
    BAD_SPEC,
    CheckProgress,
    PairsSummary,
    result_of,
    show_results,
    show_verdict,
    summary_of,
)
from appliance.cli.check.target import CheckTarget, target_for
from appliance.cli.shell.model_options import given, parameter_name, read_options
from appliance.cli.show.printing import Output, show_progress
from appliance.errors import AssayError, ExitCode, UsageError
from verifiers.contract.kinds import Kind
from verifiers.contract.verdict import Outcome, SpecProblem, Verdict
from verifiers.registry import identity
from verifiers.registry.spec import Spec

BATCH_TEXT = 1 << 20
"""Maximum characters of submissions in a batch, unless a single one has more."""
AHEAD = 2
"""Batches queued for each running one."""

Ask = Callable[[Sequence[tuple[Spec, str]]], list[Verdict | SpecProblem]]
Judged = list[tuple[PairItem, Verdict | SpecProblem]]


def batches(items: Iterable[PairItem], size: int) -> Iterator[list[PairItem]]:
    """Yields pairs in batches of at most `size`, each with a limited amount of text."""
    gathered: list[PairItem] = []
    text = 0
    for item in items:
        if gathered and (len(gathered) == size or text + len(item.submission) > BATCH_TEXT):
            yield gathered
            gathered, text = [], 0
        gathered.append(item)
        text += len(item.submission)
    if gathered:
        yield gathered


@contextlib.contextmanager
def judged(items: Iterable[PairItem], ask: Ask, *, at_once: int, batch: int = 1) -> Iterator[Iterator[Judged]]:
    """Yields verdicts on pairs in their order, `batch` or fewer at a time, with `at_once` concurrent calls of `ask`.
    Raises what `ask` raises. On exit nothing new is asked and nothing pending is awaited."""
    pool = ThreadPoolExecutor(max_workers=at_once, thread_name_prefix="check")
    try:
        yield _in_order(pool, batches(items, batch), ask, at_once * AHEAD)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _in_order(pool: ThreadPoolExecutor, work: Iterator[list[PairItem]], ask: Ask, ahead: int) -> Iterator[Judged]:
    waiting: deque[tuple[list[PairItem], Future[list[Verdict | SpecProblem]]]] = deque()

    def begin(some: list[PairItem]) -> None:
        waiting.append((some, pool.submit(ask, [(item.spec, item.submission) for item in some])))

    for some in islice(work, ahead):
        begin(some)
    while waiting:
        first, future = waiting.popleft()
        verdicts = future.result()
        for some in islice(work, 1):
            begin(some)
        yield list(zip(first, verdicts, strict=True))


SECONDS = 120.0


def assess_spec(target: CheckTarget, kind: Kind, spec: Spec, right: str, *, seconds: float | None) -> Output[Any]:
    """Tests a check with wrong submissions and a right one. Exit code 1 if it accepts a wrong one. Raises SpecError if
    it is unusable or rejects the right one."""
    assert kind.assess is not None
    if kind.runs:
        _ = target.broker  # what runs submissions is refused without one, before anything is begun
    with target.checker(jobs=1) as checker:
        found = kind.assess.load()(checker, spec, right, seconds=seconds or SECONDS)
    lines = [f"{'sound' if found.sound else 'not sound'}: {found.reason}", *(f"  {line}" for line in found.lines())]
    return Output(found, lines, ExitCode.OK if found.sound else ExitCode.FAILED_VERDICT)


INTERRUPTED = 130
BROKEN = (Outcome.INFRA_ERROR.value,)
"""Outcomes that a continued run tries again."""
MOST_BROKEN = 64
"""Consecutive pairs without a verdict after which a run gives up, since the cause will affect the rest, too."""
TURNS = 4
"""Batches queued at a checker for each one in progress, so that it never idles."""


class CheckWork(NamedTuple):
    """Request for a run over a file of pairs."""

    kind: Kind
    base: dict[str, Any]
    """Spec fields for every line."""
    pairs: Path
    """File of pairs; `-` is standard input."""
    run: CheckRun


def run_check(kind: Kind, values: dict[str, Any]) -> Output[Any]:
    """Runs one `assay check` command. Raises AssayError for an invalid request, SpecError for a bad spec."""
    run = read_options(CheckRun, {name: values[name] for name in CheckRun.model_fields})
    chosen = given(values)
    flags = {option.flag: chosen.get(parameter_name(option.flag)) for option in kind.options}
    parts: dict[str, Any] = {option.field: chosen.get(parameter_name(option.flag)) for option in kind.checker_options}
    submitted = chosen.get(parameter_name(kind.submission.flag))
    assess = bool(chosen.get("assess"))
    key = key_option(kind)
    single = {
        "--assess": assess or None,
        kind.submission.flag: submitted,
        **({key.flag: flags[key.flag]} if key else {}),
    }
    require_pairs_or_one(run, [flag for flag, value in single.items() if value is not None])
    require_toolchain(parts.get("lean"))
    fields = fields_in(kind, run.spec, flags)
    if run.pairs is not None:
        work = CheckWork(kind, fields, run.pairs, run)
        return check_pairs(target_for((kind,), **parts), work)
    require_fields(kind, fields)
    if assess:
        spec = spec_of(kind, fields)
        right = submission_of(kind, spec, submitted) if submitted else ""
        target = target_for((kind,))
        return assess_spec(target, kind, spec, right, seconds=run.seconds)
    if submitted is None and kind.submission.default is None:
        raise missing(kind.submission.flag, kind.submission.metavar)
    spec = spec_of(kind, fields)
    submission = submission_of(kind, spec, submitted)
    target = target_for((kind,), **parts)
    with target.checker(jobs=1) as checker:
        verdict = checker.check(spec, submission, seconds=run.seconds)
    target.say_isolation(verdict)
    code = code_of(Counter([verdict.outcome.value]))
    return Output(verdict, lambda: show_verdict(verdict, evidence=run.evidence), code)


def check_pairs(place: CheckTarget, work: CheckWork) -> Output[PairsSummary | None]:
    """Checks every pair of a file; SIGTERM interrupts like Ctrl-C. Results go to `work.run.out`, or as lines to
    standard output. Raises AssayError, OSError."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with _opened(work.pairs) as stream:
        name = "standard input" if str(work.pairs) == "-" else str(work.pairs)
        pairs = PairsFile(stream, name, work.kind, work.base)
        found = pairs.scan()
        if work.run.out is None:
            return _check_all(place, work, pairs, found.total, None)
        about = _about(work, found.digest, identity(next(pairs.items()).spec)[1]) | place.about
        with closing(Results(work.run.out, about, work.pairs)) as results:
            return _check_all(place, work, pairs, found.total, results)


def code_of(counts: Counter[str]) -> ExitCode:
    """Returns the exit code for the counted outcomes of a run. Infrastructure errors take precedence over unusable
    specs, and those over failures."""
    if counts[Outcome.INFRA_ERROR]:
        return ExitCode.INFRASTRUCTURE
    if counts[BAD_SPEC]:
        return ExitCode.USAGE
    return ExitCode.OK if counts.total() == counts[Outcome.PASS] else ExitCode.FAILED_VERDICT


def _check_all(
    place: CheckTarget, work: CheckWork, pairs: PairsFile, count: int, results: Results | None
) -> Output[PairsSummary | None]:
    done = {} if results is None else {name: found for name, found in results.outcomes.items() if found not in BROKEN}
    counts = Counter(done.values())
    before = counts.total()
    started = time.monotonic()
    broken = 0
    progress = CheckProgress(count, before)
    try:
        if before < count:
            for some in _verdicts(place, work, (item for item in pairs.items() if str(item.id) not in done)):
                lines = [result_of(item.id, verdict, evidence=work.run.evidence) for item, verdict in some]
                show_results(lines) if results is None else results.add(lines)
                counts.update(line["outcome"] for line in lines)
                progress.show(counts)
                for line in lines:
                    broken = broken + 1 if line["outcome"] in BROKEN else 0
                if broken >= MOST_BROKEN:
                    raise _nothing_works(work, broken, lines[-1]["reason"])
    except KeyboardInterrupt:
        show_progress("")
        typer.echo(_stopped(work, counts.total(), count), err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        show_progress("")
    return summary_of(counts, before, time.monotonic() - started, work.run.out, code_of(counts))


def _verdicts(place: CheckTarget, work: CheckWork, items: Iterator[PairItem]) -> Iterator[Judged]:
    batch = work.kind.batch
    with place.checker(jobs=work.run.jobs) as checker:

        def ask(pairs: Sequence[tuple[Spec, str]]) -> list[Verdict | SpecProblem]:
            return checker.check_many(pairs, seconds=work.run.seconds)

        with judged(items, ask, at_once=work.run.jobs * (TURNS if batch > 1 else 1), batch=batch) as found:
            for some in found:
                if isinstance(first := some[0][1], Verdict):
                    place.say_isolation(first)
                yield some


def _nothing_works(work: CheckWork, broken: int, reason: str) -> AssayError:
    again = " and run the same command again" if work.run.out is not None else ""
    return AssayError(
        f"stopped: the last {broken} pairs got no verdict: {reason}",
        f"fix the cause{again}: these pairs are tried again",
        ExitCode.INFRASTRUCTURE,
    )


def _stopped(work: CheckWork, done: int, count: int) -> str:
    if work.run.out is None:
        return f"stopped after {done} of {count} pairs; with --out FILE a run can continue later"
    return f"stopped; {done} of {count} results are in {work.run.out}: the same command continues from there"


def _about(work: CheckWork, digest: str, verifier: str) -> dict[str, Any]:
    """Describes a run over a file of pairs by the values that must be equal to continue it. The number of jobs may
    differ."""
    return {
        "pairs": digest,
        "check": work.kind.name,
        "spec": work.base,
        "seconds": work.run.seconds,
        "evidence": work.run.evidence,
        "verifier": verifier,
        "assay": __version__,
    }


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Yields a file of pairs as a stream that can be read twice. A copy if the source cannot be rewound."""
    with _file(path) as stream:
        if stream.seekable():
            yield stream
            return
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(stream, copy)
            yield copy


def _file(path: Path) -> BinaryIO:
    """Opens a file of pairs, or standard input for `-`. Raises AssayError (2) if there is nothing to read."""
    try:
        if str(path) != "-":
            return path.open("rb")
        if sys.stdin is not None and not sys.stdin.closed:
            return sys.stdin.buffer
        why = "standard input is closed or already read"
    except OSError as error:
        why = f"{path}: {error.strerror}"
    raise UsageError(why, "set --pairs to a readable file, or `-`")
