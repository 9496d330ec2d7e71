"""What a run over pairs does when it is what checks that breaks."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from check_commands import results_of, write_lines

from appliance.cli import check_work
from appliance.cli.check_work import Job, check_pairs, code_of
from appliance.errors import AssayError, ExitCode
from verifiers.spec import Spec
from verifiers.verdict import Outcome, Verdict


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


def job(folder: Path, count: int) -> Job:
    lines = ({"id": n, "gold": "1", "prediction": str(n)} for n in range(count))
    pairs = write_lines(folder / "p.jsonl", lines)
    return Job("answer", {}, pairs, folder / "out.jsonl", 1, None, False)


def outcomes(out: Path) -> list[object]:
    return [line["outcome"] for line in results_of(out.read_text())]


def test_pairs_without_a_verdict_at_the_end_are_tried_again_and_others_are_not(tmp_path, capsys) -> None:
    asked = job(tmp_path, 40)
    assert check_pairs(Place(range(30, 40)), asked, as_json=True) is ExitCode.INFRASTRUCTURE
    assert outcomes(asked.out) == ["pass"] * 30 + ["infra_error"] * 10
    again = Place(range(0))
    assert check_pairs(again, asked, as_json=True) is ExitCode.OK
    assert again.asked == [str(n) for n in range(30, 40)]
    assert outcomes(asked.out) == ["pass"] * 40
    totals = json.loads(capsys.readouterr().out.split("\n}\n")[1] + "\n}")
    assert (totals["pass"], totals["checked_now"]) == (40, 10)


def test_one_pair_without_a_verdict_among_others_is_on_record(tmp_path) -> None:
    asked = job(tmp_path, 40)
    assert check_pairs(Place(range(7, 8)), asked, as_json=False) is ExitCode.INFRASTRUCTURE
    again = Place(range(0))
    assert check_pairs(again, asked, as_json=False) is ExitCode.INFRASTRUCTURE
    assert again.asked == []


def test_a_run_gives_up_when_nothing_works_any_more(tmp_path) -> None:
    asked = job(tmp_path, 5_000)
    place = Place(range(100, 5_000))
    with pytest.raises(AssayError, match="got no verdict: the broker is gone") as caught:
        check_pairs(place, asked, as_json=False)
    assert caught.value.code is ExitCode.INFRASTRUCTURE
    assert "run the same command again" in caught.value.hint
    assert len(place.asked) < 100 + check_work.MOST_BROKEN + 200
    assert check_pairs(Place(range(0)), asked, as_json=False) is ExitCode.OK
    assert outcomes(asked.out) == ["pass"] * 5_000


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
