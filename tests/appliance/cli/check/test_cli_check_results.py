"""Results are appended, one line each, and the next run knows them by their ids, whatever ended the run before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from appliance.cli.check.results import Results, about_path
from appliance.errors import AssayError, ExitCode

ABOUT = {"pairs": "0" * 64, "seconds": 5.0}


def result(name: object) -> dict[str, object]:
    return {"id": name, "outcome": "pass", "reason": "it is", "seconds": 0.1}


def write(path: Path, *names: object, about: dict[str, object] = ABOUT) -> int:
    """Continues a file, adds results; how many were there."""
    with closing(Results(path, about)) as results:
        before = len(results.outcomes)
        for name in names:
            results.add([result(name)])
    return before


def ids(path: Path) -> list[object]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


def refused(path: Path, about: dict[str, object] = ABOUT) -> str:
    before = path.read_bytes()
    with pytest.raises(AssayError) as caught:
        write(path, about=about)
    assert caught.value.code is ExitCode.USAGE
    assert caught.value.hint
    assert path.read_bytes() == before
    return str(caught.value)


def test_a_second_run_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert write(out, 0, 1) == 0
    assert write(out, 2) == 2
    assert ids(out) == [0, 1, 2]


@pytest.mark.parametrize("tail", [b'{"id": 2, "outc', b'{"id": 2', b"{", b"\0\0\0\0\0", b"\xff\xfe"])
def test_a_line_that_was_cut_off_is_written_anew(tmp_path: Path, tail: bytes) -> None:
    out = tmp_path / "out.jsonl"
    write(out, 0, 1)
    whole = out.read_bytes()
    out.write_bytes(whole + tail)
    assert write(out) == 2
    assert out.read_bytes() == whole


def test_whatever_byte_a_run_ended_at_the_file_becomes_the_same(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    write(out, 0, 1, 2)
    whole = out.read_bytes()
    for length in range(len(whole)):
        out.write_bytes(whole[:length])
        write(out, *range(whole[:length].count(b"\n"), 3))
        assert out.read_bytes() == whole, length


def test_what_is_not_the_end_of_the_file_is_never_cut_off(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    write(out, 0, 1)
    out.write_bytes(out.read_bytes() + b"a note of mine\n" + json.dumps(result(2)).encode() + b"\n")
    assert "line 3 is not a result" in refused(out)


def test_other_pairs_or_options_are_refused_and_named(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    write(out, 0)
    assert "seconds changed" in refused(out, ABOUT | {"seconds": 6.0})
    assert "pairs changed" in refused(out, ABOUT | {"pairs": "1" * 64})


def test_a_file_that_no_run_began_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("my thesis\n")
    assert about_path(out).name in refused(out)
    about_path(out).write_text("{")
    assert "cannot be read" in refused(out)


def test_a_run_that_left_nothing_can_begin_anew_about_something_else(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    write(out)
    assert write(out, 0, about=ABOUT | {"seconds": 1.0}) == 0


def test_the_last_line_of_an_id_counts(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with closing(Results(out, ABOUT)) as results:
        results.add([result(1) | {"outcome": "infra_error"}, result("b")])
        results.add([result(1)])
        assert results.outcomes == {"1": "pass", "b": "pass"}
    with closing(Results(out, ABOUT)) as results:
        assert results.outcomes == {"1": "pass", "b": "pass"}
    assert ids(out) == [1, "b", 1]


def test_what_comes_after_zeros_is_never_cut_off(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    write(out, 0)
    out.write_bytes(out.read_bytes() + b"\0\0\n" + json.dumps(result(2)).encode() + b"\n")
    assert "more lines follow" in refused(out)


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    program = (
        "import sys\nfrom pathlib import Path\nfrom appliance.cli.check.results import Results\n"
        f"Results(Path(sys.argv[1]), {ABOUT!r})\nprint('held', flush=True)\nsys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(AssayError, match="another run is writing"):
            Results(out, ABOUT)
    finally:
        holder.kill()
        holder.communicate()
    write(out, 0)


def test_what_is_no_file_and_the_pairs_themselves_are_refused(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text("{}\n")
    with pytest.raises(AssayError, match="name the same file"):
        Results(pairs, ABOUT, pairs)
    with pytest.raises(AssayError, match="not a regular file"):
        Results(Path("/dev/null"), ABOUT)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(AssayError, match="not a regular file"):
        Results(fifo, ABOUT)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for name in (tmp_path, loop, tmp_path / "none" / "out", Path("/proc/out"), tmp_path / ("x" * 300)):
        with pytest.raises(AssayError, match=str(name)[:100]) as caught:
            Results(name, ABOUT)
        assert caught.value.code == 2
    assert pairs.read_text() == "{}\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a disk that is full")
def test_a_full_disk_leaves_whole_lines_and_the_run_goes_on_later(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], check=True)
    try:
        out = disk / "out.jsonl"
        ballast = disk / "ballast"
        with closing(Results(out, ABOUT)) as results:
            results.add([result(0)])
            ballast.write_bytes(b"x" * (48 << 10))
            with pytest.raises(OSError, match="No space left") as caught:
                results.add([result(number) for number in range(1, 1000)])
            assert caught.value.filename == str(out)
        assert ids(out) == [0]
        ballast.unlink()
        assert write(out, 1) == 1
        assert ids(out) == [0, 1]
    finally:
        subprocess.run(["umount", str(disk)], check=True)
