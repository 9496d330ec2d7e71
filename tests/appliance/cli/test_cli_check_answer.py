"""`assay check answer`, as people and scripts use it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest
from check_commands import ASSAY, results_of, run, start, without_seconds, write_lines
from sandbox_commands import environ

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
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert process.poll() is None, process.communicate()
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
    ],
)
def test_one_answer_is_checked_and_the_exit_code_says_so(tmp_path, arguments, code, outcome) -> None:
    told = run(tmp_path, "answer", *arguments)
    assert (told.returncode, told.stdout.split()[0]) == (code, outcome), told.stderr
    assert len(told.stdout.splitlines()) == 2


def test_an_answer_may_come_from_standard_input_and_the_verdict_as_json(tmp_path) -> None:
    told = run(tmp_path, "answer", "--gold", "1/2", "--answer", "-", "--json", typed="0.5\n")
    verdict = json.loads(told.stdout)
    assert (told.returncode, verdict["outcome"], verdict["ground"]) == (0, "pass", "proved")
    assert verdict["isolation"] in ("nsjail", "gvisor", "process")


def test_hostile_text_cannot_steer_the_terminal(tmp_path) -> None:
    told = run(tmp_path, "answer", "--gold", "1/2", "--answer", "\x1b[2J\x1b]0;owned\x07\u202e1/2", "--evidence")
    assert told.returncode == 1
    assert "\x1b" not in told.stdout + told.stderr
    assert "\u202e" not in told.stdout + told.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--gold", "1/2"], "--answer is missing"),
        ([], "--gold is missing"),
        (["--gold", "1/0", "--answer", "1"], "cannot be"),
        (["--gold", "1", "--answer", "1", "--form", "nice"], "form"),
        (["--gold", "1", "--answer", "1", "--out", "x"], "--pairs"),
        (["--gold", "1", "--pairs", "x"], "both"),
        (["--pairs", "/no/such/file"], "No such file"),
        (["--pairs", "/"], "directory"),
        (["--pairs", "x", "--out", "/no/such/folder/x"], "no folder"),
        (["--gold", "1", "--answer", "1", "--spec", "/no/such/spec.toml"], "No such file"),
    ],
)
def test_what_cannot_be_asked_ends_with_2_and_says_what_to_do(tmp_path, arguments, word) -> None:
    told = run(tmp_path, "answer", *arguments)
    assert told.returncode == 2
    assert word in told.stderr
    assert "Traceback" not in told.stderr
    assert len(told.stderr.splitlines()) >= 2
    assert told.stdout == ""


def test_a_file_of_pairs_gives_a_line_of_results_for_each(tmp_path) -> None:
    told = run(tmp_path, "answer", "--pairs", write_lines(tmp_path / "p.jsonl", PAIRS))
    lines = results_of(told.stdout)
    assert told.returncode == 1
    assert [(line["id"], line["outcome"]) for line in lines] == [("half", "pass"), ("third", "fail"), (3, "pass")]
    assert all(set(line) == {"id", "outcome", "reason", "seconds"} for line in lines)
    assert "3 pairs: 1 fail, 2 pass" in told.stderr


def test_pairs_may_come_from_standard_input_and_results_bring_evidence(tmp_path) -> None:
    typed = (json.dumps(PAIRS[0]) + "\n").encode()
    told = run(tmp_path, "answer", "--pairs", "-", "--evidence", typed=typed)
    (line,) = results_of(told.stdout)
    assert told.returncode == 0
    assert line["ground"] == "proved"
    assert {"evidence", "verifier", "version", "tools", "isolation", "score"} <= set(line)


def test_a_gold_without_a_value_says_nothing_about_the_prediction(tmp_path) -> None:
    pairs = write_lines(tmp_path / "p.jsonl", [*PAIRS[:1], {"id": "b", "gold": "1/0", "prediction": "1"}])
    out = tmp_path / "out.jsonl"
    told = run(tmp_path, "answer", "--pairs", pairs, "--out", out, "--json")
    totals = json.loads(told.stdout)
    assert (told.returncode, totals["pass"], totals["bad_spec"], totals["infra_error"]) == (2, 1, 1, 0)
    line = results_of(out.read_text())[1]
    assert line["outcome"] == "infra_error"
    assert str(line["reason"]).startswith("the spec cannot be used")
    assert run(tmp_path, "answer", "--pairs", pairs, "--out", out).returncode == 2


def test_faulty_pairs_are_told_before_anything_is_checked(tmp_path) -> None:
    pairs = write_lines(tmp_path / "p.jsonl", [*PAIRS, PAIRS[0]])
    out = tmp_path / "out.jsonl"
    told = run(tmp_path, "answer", "--pairs", pairs, "--out", out)
    assert told.returncode == 2
    assert "line 4: the id half is that of line 1 too" in told.stderr
    assert not out.exists()


def test_a_killed_run_goes_on_and_leaves_the_same_file(tmp_path) -> None:
    pairs = many(tmp_path / "p.jsonl", 6000)
    whole, broken = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"
    assert run(tmp_path, "answer", "--pairs", pairs, "--out", whole, "--jobs", "2").returncode == 1
    for count in (1, 2000):
        process = start(tmp_path, "answer", "--pairs", pairs, "--out", broken, "--jobs", "2")
        wait_for_lines(broken, count, process)
        process.kill()
        process.communicate()
    done = broken.read_bytes().count(b"\n")
    assert 2000 <= done < 6000
    told = run(tmp_path, "answer", "--pairs", pairs, "--out", broken, "--json")
    assert json.loads(told.stdout)["checked_now"] == 6000 - done
    assert told.returncode == 1
    assert without_seconds(broken) == without_seconds(whole)
    again = run(tmp_path, "answer", "--pairs", pairs, "--out", broken)
    assert again.returncode == 1
    assert "nothing was left to check" in again.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_keeps_what_it_has_and_says_how_to_go_on(tmp_path, number) -> None:
    pairs, out = many(tmp_path / "p.jsonl", 6000), tmp_path / "out.jsonl"
    process = start(tmp_path, "answer", "--pairs", pairs, "--out", out)
    wait_for_lines(out, 500, process)
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"results are in {out}: the same command goes on" in told
    assert "Traceback" not in told
    lines = results_of(out.read_text())
    assert [line["id"] for line in lines] == list(range(len(lines)))
    assert 500 <= len(lines) < 6000


def test_two_runs_on_one_file_are_refused_and_the_first_goes_on(tmp_path) -> None:
    pairs, out = many(tmp_path / "p.jsonl", 4000), tmp_path / "out.jsonl"
    process = start(tmp_path, "answer", "--pairs", pairs, "--out", out)
    wait_for_lines(out, 1, process)
    second = run(tmp_path, "answer", "--pairs", pairs, "--out", out)
    assert second.returncode == 2
    assert "another run is writing" in second.stderr
    process.communicate(timeout=120)
    assert process.returncode == 1
    assert len(results_of(out.read_text())) == 4000


def test_other_pairs_and_other_options_are_refused(tmp_path) -> None:
    pairs, out = write_lines(tmp_path / "p.jsonl", PAIRS), tmp_path / "out.jsonl"
    run(tmp_path, "answer", "--pairs", pairs, "--out", out)
    before = out.read_bytes()
    told = run(tmp_path, "answer", "--pairs", pairs, "--out", out, "--form", "same")
    assert (told.returncode, "spec changed" in told.stderr) == (2, True)
    write_lines(pairs, PAIRS[:2])
    told = run(tmp_path, "answer", "--pairs", pairs, "--out", out)
    assert (told.returncode, "pairs changed" in told.stderr) == (2, True)
    assert out.read_bytes() == before


def test_results_that_nobody_can_take_are_said(tmp_path) -> None:
    pairs = write_lines(tmp_path / "p.jsonl", PAIRS)
    with Path("/dev/full").open("wb") as full:
        told = subprocess.run(
            [*ASSAY, "answer", "--pairs", str(pairs)],
            env=environ(tmp_path),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
        )
    assert told.returncode == 5
    assert b"No space left on device" in told.stderr
    assert b"Traceback" not in told.stderr


def test_progress_is_shown_on_a_terminal_and_nowhere_else(tmp_path) -> None:
    pairs, out = many(tmp_path / "p.jsonl", 3000), tmp_path / "out.jsonl"
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*ASSAY, "answer", "--pairs", str(pairs), "--out", str(out)],
        env=environ(tmp_path),
        stdout=subprocess.PIPE,
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
    assert process.communicate(timeout=60)[0].startswith(b"3000 pairs: 600 fail, 2400 pass")
    assert b" of 3000  " in seen
    assert run(tmp_path, "answer", "--pairs", pairs, "--out", out).stderr == ""


def test_the_library_is_three_lines(tmp_path) -> None:
    from verifiers.checker import Checker
    from verifiers.spec import AnswerSpec

    with Checker() as checker:
        verdict = checker.check(AnswerSpec(expected="1/2"), "0.5")
    assert verdict.passed
