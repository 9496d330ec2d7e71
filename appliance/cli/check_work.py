"""`assay check ...`: one submission, or a file of pairs, through the verifiers; nothing is kept but what was asked for.

What always holds: a run over a file leaves the results that it has, in the order of the pairs, however it ends, and
says how to go on; what broke, and a spec that cannot be used, is never told as a failed submission. A run that is gone
on with first tries again what got no verdict, wherever that is in the file.
"""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import typer

from appliance import __version__
from appliance.cli.check_pairs import Item, Pairs
from appliance.cli.check_place import Place
from appliance.cli.check_results import Results
from appliance.cli.check_run import Judged, judged
from appliance.cli.check_show import Progress, result_of, show_results, show_summary, show_verdict
from appliance.errors import AssayError, ExitCode
from verifiers.selftest_cases import version_of
from verifiers.spec import Spec
from verifiers.verdict import Outcome, Verdict

INTERRUPTED = 130
BAD_SPEC = "bad_spec"
UNUSABLE = "the spec cannot be used"
"""How the reason of a verdict begins that says nothing about the submission, because the spec decides nothing."""
BROKEN = (Outcome.INFRA_ERROR,)
"""What is tried again when a run is gone on with."""
MOST_BROKEN = 64
"""Pairs in a row without a verdict, after which a run gives up: what keeps all of them from it will keep the rest."""
BATCHES = {"answer": 16, "smt": 4, "checklist": 4}
"""Pairs that are asked about together, of kinds that are decided from a text: asking costs more than one takes."""
TURNS = 4
"""Batches of those that wait at a checker for each that it works at, so that it always has work."""


class Job(NamedTuple):
    """What a run over a file of pairs was asked for."""

    kind: str
    base: dict[str, Any]
    """Spec fields for every line."""
    pairs: Path
    """`-` is standard input."""
    out: Path | None
    jobs: int
    seconds: float | None
    """None: what is usual for the kind."""
    evidence: bool


def check_one(
    place: Place, spec: Spec, submission: str, *, seconds: float | None, evidence: bool, as_json: bool
) -> ExitCode:
    """Raises SpecError for a spec that cannot be used."""
    with place.checker(jobs=1) as checker:
        verdict = checker.check(spec, submission, seconds=seconds)
    place.say_isolation(verdict)
    show_verdict(verdict, evidence=evidence, as_json=as_json)
    return code_of(Counter([kind_of(verdict.outcome, verdict.reason)]))


def check_pairs(place: Place, job: Job, *, as_json: bool) -> ExitCode:
    """Results go to `job.out`, or else line by line to standard output. Raises AssayError, OSError."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with _opened(job.pairs) as stream:
        name = "standard input" if str(job.pairs) == "-" else str(job.pairs)
        pairs = Pairs(stream, name, job.kind, job.base)
        found = pairs.scan()
        if job.out is None:
            return _check_all(place, job, pairs, found.total, None, as_json=as_json)
        about = _about(job, found.digest, version_of(next(pairs.items()).spec)) | place.about
        with Results(job.out, about, job.pairs) as results:
            return _check_all(place, job, pairs, found.total, results, as_json=as_json)


def kind_of(outcome: str, reason: str) -> str:
    """The outcome, with specs that cannot be used apart from what broke here."""
    return BAD_SPEC if outcome == Outcome.INFRA_ERROR and reason.startswith(UNUSABLE) else str(outcome)


def code_of(counts: Counter[str]) -> ExitCode:
    """What broke here goes before a spec that cannot be used, and that before what does not pass."""
    if counts[Outcome.INFRA_ERROR]:
        return ExitCode.INFRASTRUCTURE
    if counts[BAD_SPEC]:
        return ExitCode.USAGE
    return ExitCode.OK if counts.total() == counts[Outcome.PASS] else ExitCode.FAILED_VERDICT


def _check_all(place: Place, job: Job, pairs: Pairs, count: int, results: Results | None, *, as_json: bool) -> ExitCode:
    counts: Counter[str] = Counter()
    open_places = [] if results is None else _earlier(pairs, results, counts)
    before = counts.total()
    begin = before + len(open_places)
    again = _Again(open_places, results)
    started = time.monotonic()
    broken = 0
    with Progress(count, before) as progress:
        try:
            if before < count:
                items = chain(_at(pairs, open_places), islice(pairs.items(), begin, None))
                for some in _verdicts(place, job, items):
                    lines = [result_of(item.id, verdict, evidence=job.evidence) for item, verdict in some]
                    _put(again.take(lines), results)
                    counts.update(map(_kind, lines))
                    progress.show(counts)
                    for line in lines:
                        broken = broken + 1 if _kind(line) in BROKEN else 0
                    if broken >= MOST_BROKEN:
                        raise _nothing_works(job, broken, lines[-1]["reason"])
        except KeyboardInterrupt:
            progress.clear()
            typer.echo(_stopped(job, counts.total(), count), err=True)
            raise typer.Exit(INTERRUPTED) from None
        finally:
            again.put()
    show_summary(counts, before, time.monotonic() - started, out=job.out, as_json=as_json)
    return code_of(counts)


class _Again:
    """Results of pairs that are tried again; they come first, and go into the file together, once all are there."""

    def __init__(self, places: list[int], results: Results | None) -> None:
        self._places, self._results = places, results
        self._lines: dict[int, dict[str, Any]] = {}

    def take(self, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Keeps those that are tried again; the others, which are to be appended."""
        known = len(self._lines)
        own = lines[: len(self._places) - known] if self._places else []
        self._lines.update(zip(self._places[known:], own, strict=False))
        if own and len(self._lines) == len(self._places):
            self.put()
            self._places = []
        return lines[len(own) :]

    def put(self) -> None:
        """Also when the run ends before all of them are there."""
        lines, self._lines = self._lines, {}
        if self._results is not None:
            self._results.exchange(lines)


def _earlier(pairs: Pairs, results: Results, counts: Counter[str]) -> list[int]:
    """Counts what is there already; the places of what has to be tried again, but for that at the end, which is cut
    off."""
    ids = (item.id for item in pairs.items())
    found = []
    for number, earlier in enumerate(results.earlier(ids, again=lambda result: _kind(result) in BROKEN)):
        if _kind(earlier) in BROKEN:
            found.append(number)
        else:
            counts[_kind(earlier)] += 1
    return found


def _at(pairs: Pairs, places: Sequence[int]) -> Iterator[Item]:
    """The pairs at these places, in order."""
    wanted = set(places)
    if wanted:
        yield from (item for number, item in enumerate(islice(pairs.items(), places[-1] + 1)) if number in wanted)


def _verdicts(place: Place, job: Job, items: Iterator[Item]) -> Iterator[Judged]:
    batch = BATCHES.get(job.kind, 1)
    with place.checker(jobs=job.jobs) as checker:

        def ask(pairs: Sequence[tuple[Spec, str]]) -> list[Verdict]:
            return checker.check_many(pairs, seconds=job.seconds)

        with judged(items, ask, at_once=job.jobs * (TURNS if batch > 1 else 1), batch=batch) as found:
            for some in found:
                place.say_isolation(some[0][1])
                yield some


def _kind(result: dict[str, Any]) -> str:
    return kind_of(result["outcome"], result["reason"])


def _nothing_works(job: Job, broken: int, reason: str) -> AssayError:
    again = " and run the same command again" if job.out is not None else ""
    return AssayError(
        f"stopped: the last {broken} pairs got no verdict: {reason}",
        f"mend what that says{again}: they are tried again",
        ExitCode.INFRASTRUCTURE,
    )


def _put(lines: list[dict[str, Any]], results: Results | None) -> None:
    if results is None:
        show_results(lines)
    else:
        results.add(lines)


def _stopped(job: Job, done: int, count: int) -> str:
    if job.out is None:
        return f"stopped after {done} of {count} pairs; with --out FILE a run can be gone on with"
    return f"stopped; {done} of {count} results are in {job.out}: the same command goes on from there"


def _about(job: Job, digest: str, verifier: str) -> dict[str, Any]:
    """What has to be the same for a run to be the same run. How many work at it has not."""
    return {
        "pairs": digest,
        "check": job.kind,
        "spec": job.base,
        "seconds": job.seconds,
        "evidence": job.evidence,
        "verifier": verifier,
        "assay": __version__,
    }


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A stream that can be read twice: of a file, or of a copy of whatever cannot be rewound."""
    with _file(path) as stream:
        if stream.seekable():
            yield stream
            return
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(stream, copy)
            yield copy


def _file(path: Path) -> BinaryIO:
    """Raises AssayError (2) where there is nothing to read."""
    try:
        if str(path) != "-":
            return path.open("rb")
        if sys.stdin is not None and not sys.stdin.closed:
            return sys.stdin.buffer
        why = "there is no standard input left to read"
    except OSError as error:
        why = f"{path}: {error.strerror}"
    raise AssayError(why, "--pairs names a file of pairs that can be read, or `-`", ExitCode.USAGE)
