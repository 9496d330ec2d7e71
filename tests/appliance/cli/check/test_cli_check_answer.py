"""`assay check answer`, as people and scripts use it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from check_commands import ASSAY, results_of, start, without_seconds, write_lines
from sandbox_commands import environ

DOCS = Path(__file__).parents[4] / "docs"
PAIRS = [
    {"id": "half", "gold": "1/2", "prediction": "\\frac{1}{2}"},
    {"id": "third", "gold": "1/3", "prediction": "0.33"},
    {"id": 3, "gold": "x^2 - 1", "prediction": "(x-1)*(x+1)", "spec": {"form": "equal"}},
]


def many(path: Path, count: int) -> Path:
    lines = ({"id": n, "gold": f"{n}/7", "prediction": f"{n + (n % 5 == 0)}/7"} for n in range(count))
    return write_lines(path, lines)


def wait_for_lines(path: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while True:
        ended = process.poll() is not None  # before the look, so that all that it wrote is seen
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        assert not ended, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("arguments", "code", "outcome"),
    [
        (["--gold", "1/2", "--answer", "0.5"], 0, "pass"),
        (["--gold", "1/2", "--answer", "0.6"], 1, "fail"),
        (["--gold", "-3", "--answer", "-3"], 0, "pass"),
        (["--gold", "1/3", "--answer", "0.333", "--absolute", "0.001"], 0, "pass"),
        (["--gold", "7", "--answer", "so \\boxed{7}", "--boxed"], 0, "pass"),
        (["--gold", "7", "--answer", "\\boxed{7} or \\boxed{8}", "--boxed"], 1, "fail"),
        (["--gold", "(1, 2)", "--answer", "(2, 1)", "--any-order"], 0, "pass"),
        (["--gold", "5 cm", "--answer", "5", "--units", "optional"], 0, "pass"),
        (["--gold", "sqrt(x^2)", "--answer", "x"], 1, "fail"),
        (["--gold", "sqrt(x^2)", "--answer", "x", "--domain", "positive", "--form", "equal"], 0, "pass"),
    ],
)
def test_one_answer_is_checked_and_the_exit_code_says_so(checked, arguments, code, outcome) -> None:
    result = checked("answer", *arguments)
    assert (result.returncode, result.stdout.split()[0]) == (code, outcome), result.stderr
    assert len(result.stdout.splitlines()) == 2


def test_an_answer_may_come_from_standard_input_and_the_verdict_as_json(checked) -> None:
    result = checked("answer", "--gold", "1/2", "--answer", "-", "--json", typed="0.5\n")
    verdict = json.loads(result.stdout)
    assert (result.returncode, verdict["outcome"], verdict["ground"]) == (0, "pass", "proved")
    assert verdict["isolation"] in ("nsjail", "gvisor", "process")


def test_fields_may_come_from_a_file_and_options_go_before_them(checked, tmp_path) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text('form = "same"\n')
    assert checked("answer", "--gold", "1/2", "--answer", "2/4", "--spec", spec).returncode == 1
    assert checked("answer", "--gold", "1/2", "--answer", "2/4", "--spec", spec, "--form", "equal").returncode == 0


def test_hostile_text_cannot_steer_the_terminal(checked) -> None:
    result = checked("answer", "--gold", "1/2", "--answer", "\x1b[2J\x1b]0;owned\x07\u202e1/2", "--evidence")
    assert result.returncode == 1
    assert "\x1b" not in result.stdout + result.stderr
    assert "\u202e" not in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gold", "1/2"], "--answer is missing"),
        ([], "--gold is missing"),
        (["--gold", "1/0", "--answer", "1"], "expected answer"),
        (["--gold", "1", "--answer", "1", "--form", "nice"], "form"),
        (["--gold", "1", "--answer", "1", "--out", "x"], "--pairs"),
        (["--gold", "1", "--pairs", "x"], "cannot be combined"),
        (["--pairs", "/no/such/file"], "No such file"),
        (["--pairs", "/"], "directory"),
        (["--pairs", "x", "--out", "/no/such/folder/x"], "no such folder"),
        (["--gold", "1", "--answer", "1", "--spec", "/no/such/spec.toml"], "No such file"),
        (["--gold", "1", "--answer", "1", "--seconds", "0"], "--seconds"),
        (["--gold", "1", "--answer", "1", "--frobnicate"], "--frobnicate"),
    ],
)
def test_what_cannot_be_asked_ends_with_2_and_says_what_to_do(checked, arguments, message) -> None:
    result = checked("answer", *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) >= 2
    assert result.stdout == ""


def test_a_file_of_pairs_gives_a_line_of_results_for_each(checked, tmp_path) -> None:
    result = checked("answer", "--pairs", write_lines(tmp_path / "p.jsonl", PAIRS))
    lines = results_of(result.stdout)
    assert result.returncode == 1
    assert [(line["id"], line["outcome"]) for line in lines] == [("half", "pass"), ("third", "fail"), (3, "pass")]
    assert all(set(line) == {"id", "outcome", "reason", "seconds"} for line in lines)
    assert "3 pairs: 1 fail, 2 pass" in result.stderr


def test_pairs_may_come_from_standard_input_and_results_bring_evidence(checked) -> None:
    result = checked("answer", "--pairs", "-", "--evidence", typed=json.dumps(PAIRS[0]) + "\n")
    (line,) = results_of(result.stdout)
    assert result.returncode == 0
    assert line["ground"] == "proved"
    assert {"evidence", "verifier", "version", "tools", "isolation", "score"} <= set(line)


def test_a_gold_without_a_value_says_nothing_about_the_prediction(checked, tmp_path) -> None:
    pairs = write_lines(tmp_path / "p.jsonl", [*PAIRS[:1], {"id": "b", "gold": "1/0", "prediction": "1"}])
    out = tmp_path / "out.jsonl"
    result = checked("answer", "--pairs", pairs, "--out", out, "--json")
    totals = json.loads(result.stdout)
    assert (result.returncode, totals["pass"], totals["bad_spec"], totals["infra_error"]) == (2, 1, 1, 0)
    line = results_of(out.read_text())[1]
    assert line["outcome"] == "bad_spec"
    assert str(line["reason"]).startswith("the spec cannot be used")
    assert checked("answer", "--pairs", pairs, "--out", out).returncode == 2


def test_faulty_pairs_are_told_before_anything_is_checked(checked, tmp_path) -> None:
    pairs = write_lines(tmp_path / "p.jsonl", [*PAIRS, PAIRS[0]])
    out = tmp_path / "out.jsonl"
    result = checked("answer", "--pairs", pairs, "--out", out)
    assert result.returncode == 2
    assert "line 4: duplicate id half (also on line 1)" in result.stderr
    assert not out.exists()


def test_other_pairs_and_other_options_are_refused(checked, tmp_path) -> None:
    pairs, out = write_lines(tmp_path / "p.jsonl", PAIRS), tmp_path / "out.jsonl"
    checked("answer", "--pairs", pairs, "--out", out)
    before = out.read_bytes()
    result = checked("answer", "--pairs", pairs, "--out", out, "--form", "same")
    assert (result.returncode, "spec changed" in result.stderr) == (2, True)
    write_lines(pairs, PAIRS[:2])
    result = checked("answer", "--pairs", pairs, "--out", out)
    assert (result.returncode, "pairs changed" in result.stderr) == (2, True)
    assert out.read_bytes() == before


@contextlib.contextmanager
def busy_others(count: int) -> Iterator[None]:
    """Other work on the machine that wants every processor all the time."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_runs_killed_at_any_moment_beside_busy_others_leave_the_file_of_a_straight_one(
    checked, check_data, tmp_path
) -> None:
    """Between two lines, in one, before the first and while the last ones are judged; nothing else is told apart."""
    draw = random.Random(7)
    pairs = many(tmp_path / "p.jsonl", 160)
    whole, broken = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"
    assert checked("answer", "--pairs", pairs, "--out", whole, "--jobs", "2").returncode == 1
    with busy_others(2):
        for least in (0, 1, draw.randrange(20, 60), draw.randrange(60, 110)):
            process = start(check_data, "answer", "--pairs", pairs, "--out", broken, "--jobs", "2")
            try:
                if least:
                    wait_for_lines(broken, least, process)
                time.sleep(draw.random() * 0.05)
            finally:
                process.send_signal(signal.SIGKILL)
                process.communicate()
        done = broken.read_bytes().count(b"\n")
        result = checked("answer", "--pairs", pairs, "--out", broken, "--jobs", "2", "--json")
    assert done >= 60
    assert (result.returncode, json.loads(result.stdout)["checked_now"]) == (1, 160 - done)
    assert without_seconds(broken) == without_seconds(whole)


def test_a_killed_run_goes_on_and_leaves_the_same_file(checked, check_data, tmp_path) -> None:
    pairs = many(tmp_path / "p.jsonl", 600)
    whole, broken = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"
    assert checked("answer", "--pairs", pairs, "--out", whole, "--jobs", "2").returncode == 1
    process = start(check_data, "answer", "--pairs", pairs, "--out", broken)
    wait_for_lines(broken, 100, process)
    process.kill()
    process.communicate()
    done = broken.read_bytes().count(b"\n")
    assert 100 <= done < 600
    result = checked("answer", "--pairs", pairs, "--out", broken, "--jobs", "2", "--json")
    assert json.loads(result.stdout)["checked_now"] == 600 - done
    assert result.returncode == 1
    assert without_seconds(broken) == without_seconds(whole)
    again = checked("answer", "--pairs", pairs, "--out", broken)
    assert again.returncode == 1
    assert "nothing left to check" in again.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_keeps_what_it_has_and_says_how_to_go_on(check_data, tmp_path, number) -> None:
    pairs, out = many(tmp_path / "p.jsonl", 6_000), tmp_path / "out.jsonl"
    process = start(check_data, "answer", "--pairs", pairs, "--out", out)
    wait_for_lines(out, 100, process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert f"results are in {out}: the same command continues" in errors
    assert "Traceback" not in errors
    lines = results_of(out.read_text())
    assert [line["id"] for line in lines] == list(range(len(lines)))
    assert 100 <= len(lines) < 6_000


def test_two_runs_on_one_file_are_refused_and_the_first_goes_on(checked, check_data, tmp_path) -> None:
    pairs, out = many(tmp_path / "p.jsonl", 500), tmp_path / "out.jsonl"
    process = start(check_data, "answer", "--pairs", pairs, "--out", out)
    wait_for_lines(out, 1, process)
    process.send_signal(signal.SIGSTOP)  # whatever the second one takes, the first is not done
    second = checked("answer", "--pairs", pairs, "--out", out)
    process.send_signal(signal.SIGCONT)
    assert second.returncode == 2
    assert "another run is writing" in second.stderr
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert output.startswith("500 pairs: 100 fail, 400 pass")
    assert len(results_of(out.read_text())) == 500


def test_a_terminal_sees_progress_and_a_full_disk_is_said(check_data, tmp_path) -> None:
    pairs = many(tmp_path / "p.jsonl", 2_000)
    ours, theirs = pty.openpty()
    with Path("/dev/full").open("wb") as full, Path("/dev/null").open() as nothing:
        process = subprocess.Popen(
            [*ASSAY, "answer", "--pairs", str(pairs), "--out", str(tmp_path / "out.jsonl")],
            env=environ(check_data),
            stdin=nothing,
            stdout=full,
            stderr=theirs,
        )
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 4096):
            seen += chunk
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(ours)
    assert process.wait(timeout=120) == 5
    assert b" of 2000  " in seen
    assert b"No space left on device" in seen
    assert b"Traceback" not in seen


def test_without_a_broker_programs_are_refused_and_answers_are_read_in_a_process_that_confines_itself(
    checked, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    spec, source = tmp_path / "spec.toml", tmp_path / "source.py"
    examples = "".join(f'[[examples]]\narguments = "{n}"\nexpected = "{n}"\n' for n in (1, 2))
    spec.write_text(f'function = "f"\n{examples}')
    source.write_text("def f(x): return x\n")
    result = checked("answer", "--gold", "1/2", "--answer", "0.5", shared=False)
    assert (result.returncode, result.stdout.split()[0]) == (0, "pass"), result.stderr
    assert result.stderr.count("self-confined process") == 1
    refused = checked("code", "--spec", spec, "--submission", source, shared=False)
    assert refused.returncode == 3
    assert "only root can start one" in refused.stderr


def test_the_library_is_three_lines() -> None:
    """The example in docs/features.md and docs/verifiers.md runs."""
    start = "    from verifiers import"
    lines = (DOCS / "verifiers.md").read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(start))
    shown = "\n".join(lines[first : first + 3])
    assert shown in (DOCS / "features.md").read_text()
    program = textwrap.dedent(shown)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert "Outcome.PASS" in result.stdout, result.stderr
