"""What a run over pairs does when it is what checks that breaks."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer
from check_commands import results_of, write_lines

from appliance.cli.check import work as check_work
from appliance.cli.check.options import CheckRun
from appliance.cli.check.work import CheckWork, check_pairs, code_of
from appliance.errors import AssayError, ExitCode
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.registry import kind_named
from verifiers.registry.spec import Spec


class Place:
    """Passes everything, as long as it works: `broken` pairs get no verdict."""

    def __init__(self, broken: range) -> None:
        self.broken = broken
        self.asked: list[str] = []
        self.about: dict[str, str] = {}

    @contextmanager
    def checker(self, *, jobs: int) -> Iterator[Place]:
        yield self

    def check_many(self, pairs: Sequence[tuple[Spec, str]], seconds: float | None) -> list[Verdict]:
        self.asked += [submission for _, submission in pairs]
        return [self._verdict(submission) for _, submission in pairs]

    def _verdict(self, submission: str) -> Verdict:
        broken = int(submission) in self.broken
        outcome, reason = (Outcome.INFRA_ERROR, "the broker is gone\x1b[2J") if broken else (Outcome.PASS, "equal")
        return Verdict(
            outcome=outcome, score=float(not broken), reason=reason, verifier="answer", version="1", seconds=0
        )

    def say_isolation(self, verdict: Verdict) -> None:
        pass


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def job(folder: Path, count: int) -> CheckWork:
    lines = ({"id": n, "gold": "1", "prediction": str(n)} for n in range(count))
    pairs = write_lines(folder / "p.jsonl", lines)
    return CheckWork(kind_named("answer"), {}, pairs, CheckRun(out=folder / "out.jsonl"))


def outcomes(out: Path) -> list[object]:
    """In the order of the ids; the last line of an id counts."""
    found = {line["id"]: line["outcome"] for line in results_of(out.read_text())}
    return [found[name] for name in sorted(found)]  # type: ignore[type-var]


def test_pairs_without_a_verdict_at_the_end_are_tried_again_and_others_are_not(tmp_path) -> None:
    asked = job(tmp_path, 40)
    assert check_pairs(Place(range(30, 40)), asked).code is ExitCode.INFRASTRUCTURE
    assert outcomes(asked.run.out) == ["pass"] * 30 + ["infra_error"] * 10
    again = Place(range(0))
    continued = check_pairs(again, asked)
    assert again.asked == [str(n) for n in range(30, 40)]
    assert outcomes(asked.run.out) == ["pass"] * 40
    totals = continued.document
    assert (continued.code, totals.passed, totals.checked_now) == (ExitCode.OK, 40, 10)


def test_pairs_without_a_verdict_among_others_are_tried_again_in_their_order(tmp_path) -> None:
    asked = job(tmp_path, 60)
    out = asked.run.out
    assert out is not None
    first = Place(range(7, 9))
    assert check_pairs(first, asked).code is ExitCode.INFRASTRUCTURE
    assert outcomes(out) == ["pass"] * 7 + ["infra_error"] * 2 + ["pass"] * 51
    lines = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join(lines[:40]))  # as if it had been killed there
    again = Place(range(8, 9))
    continued = check_pairs(again, asked)
    assert again.asked == ["7", "8", *map(str, range(40, 60))]
    assert outcomes(out) == ["pass"] * 8 + ["infra_error"] + ["pass"] * 51
    totals = continued.document
    assert (continued.code, totals.pairs, totals.passed) == (ExitCode.INFRASTRUCTURE, 60, 59)
    assert (totals.infra_error, totals.checked_now) == (1, 22)
    last = Place(range(0))
    assert check_pairs(last, asked).code is ExitCode.OK
    assert last.asked == ["8"]
    assert [line["id"] for line in results_of(out.read_text())][:40] == list(range(40))
    assert outcomes(out) == ["pass"] * 60


def test_what_was_tried_again_is_kept_when_the_run_is_stopped(tmp_path) -> None:
    asked = job(tmp_path, 100)
    assert asked.run.out is not None
    assert check_pairs(Place(range(0, 80, 2)), asked).code is ExitCode.INFRASTRUCTURE

    class Stopped(Place):
        def _verdict(self, submission: str) -> Verdict:
            if submission == "70":
                raise KeyboardInterrupt
            return super()._verdict(submission)

    with pytest.raises(typer.Exit):
        check_pairs(Stopped(range(0)), asked)
    found = outcomes(asked.run.out)
    assert len(found) == 100
    assert 0 < found.count("infra_error") < 40
    assert check_pairs(Place(range(0)), asked).code is ExitCode.OK
    assert outcomes(asked.run.out) == ["pass"] * 100


def test_a_run_gives_up_when_nothing_works_any_more(tmp_path) -> None:
    asked = job(tmp_path, 5_000)
    place = Place(range(100, 5_000))
    with pytest.raises(AssayError, match="got no verdict: the broker is gone") as caught:
        check_pairs(place, asked)
    assert caught.value.code is ExitCode.INFRASTRUCTURE
    assert "run the same command again" in caught.value.hint
    assert len(place.asked) < 100 + check_work.MOST_BROKEN + 200
    assert check_pairs(Place(range(0)), asked).code is ExitCode.OK
    assert outcomes(asked.run.out) == ["pass"] * 5_000


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({"pass": 3}, ExitCode.OK),
        ({"pass": 3, "fail": 1}, ExitCode.FAILED_VERDICT),
        ({"pass": 3, "hack_suspected": 1}, ExitCode.FAILED_VERDICT),
        ({"pass": 3, "fail": 1, "bad_spec": 1}, ExitCode.USAGE),
        ({"fail": 1, "bad_spec": 1, "infra_error": 1}, ExitCode.INFRASTRUCTURE),
    ],
)
def test_the_worst_of_a_file_is_its_exit_code(counts: dict[str, int], code: ExitCode) -> None:
    assert code_of(Counter(counts)) is code
