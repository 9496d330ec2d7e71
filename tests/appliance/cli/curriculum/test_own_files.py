"""Rows of a file come with the line that a person finds them on, and of two values of one name none is chosen."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from appliance.cli.curriculum import own_files
from appliance.cli.curriculum.add import RefusedRow, not_contradicted, problems_in
from appliance.cli.curriculum.own_files import LONGEST_LINE, _parquet, rows_in
from appliance.errors import UsageError
from curriculum.own.taskset import MOST_BYTES


def written(folder: Path, name: str, text: str, encoding: str = "utf-8") -> Path:
    (folder / name).write_bytes(text.encode(encoding))
    return folder / name


def test_a_row_of_a_table_is_found_by_the_line_that_it_begins_on(tmp_path: Path) -> None:
    table = 'question,answer\r\n"two\nlines",1\r\n\r\nlast,2\r\nshort\r\n'
    first, empty_before, short = rows_in(written(tmp_path, "t.csv", table, "utf-8-sig"))
    assert first == ("t.csv:2", {"question": "two\nlines", "answer": "1"}, "")
    assert empty_before == ("t.csv:5", {"question": "last", "answer": "2"}, "")
    assert (short.origin, short.values) == ("t.csv:6", None)


@pytest.mark.parametrize(
    ("name", "text"),
    [("t.csv", "question,Answer,answer \nq,1,2\n"), ("t.json", '[{"question": "q", "answer": 1, "answer": 2}]')],
)
def test_a_file_with_one_name_for_two_columns_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(UsageError, match=r"(?i)'answer'"):
        list(rows_in(written(tmp_path, name, text)))


def test_columns_without_a_name_are_no_two_of_one_name(tmp_path: Path) -> None:
    [row] = rows_in(written(tmp_path, "t.csv", "question,answer,,\nq,1,,\n"))
    assert row.values == {"question": "q", "answer": "1", "": ""}


def test_a_line_that_says_a_name_twice_is_told_and_the_next_one_read(tmp_path: Path) -> None:
    lines = '{"question": "q", "answer": "1", "answer": "2"}\n\n{"question": "q", "answer": "1"}\n'
    twice, row = rows_in(written(tmp_path, "t.jsonl", lines, "utf-8-sig"))
    assert (twice.origin, twice.values, twice.problem) == ("t.jsonl:1", None, "duplicate name 'answer'")
    assert (row.origin, row.values) == ("t.jsonl:3", {"question": "q", "answer": "1"})


@pytest.mark.parametrize(
    ("text", "encoding"), [('q,answer\na,1\n"never closed,2\n', "utf-8"), ("q,a\n\xe9,1\n", "latin-1")]
)
def test_a_table_that_cannot_be_read_on_says_behind_which_line(tmp_path: Path, text: str, encoding: str) -> None:
    with pytest.raises(UsageError, match=r"is not UTF-8 CSV after line \d"):
        list(rows_in(written(tmp_path, "t.csv", text, encoding)))


def test_problems_that_would_not_be_kept_are_refused_before_their_checks(tmp_path: Path) -> None:
    row = json.dumps({"question": "q" * 39_000, "answer": "1"})
    path = written(tmp_path, "t.jsonl", f"{row}\n" * (MOST_BYTES // 39_000 + 1))
    with pytest.raises(UsageError, match="take more than 64 MiB"):
        list(problems_in(path, "auto", [], Counter()))


def test_rows_as_published_are_read_by_their_layout_and_two_checks_of_one_question_refuse_both(tmp_path: Path) -> None:
    row = (
        '{"prompt": [{"role": "user", "content": "1+1?"}], "reward_model": {"ground_truth": "%s"}, "ability": "math"}\n'
    )
    place = written(tmp_path, "t.jsonl", row % 2 + row % 3 + '{"question": "2+2?", "answer": "4"}\n')
    notes: Counter[str] = Counter()
    refused: list[RefusedRow] = []
    rows = list(problems_in(place, "auto", refused, notes))
    assert notes == {"verl: prompt, reward_model.ground_truth; left out: ability": 2}
    [kept] = not_contradicted(rows, refused)
    assert (kept.origin, kept.answer) == ("t.jsonl:3", "4")
    assert [(one.origin, "already" in one.reason) for one in refused] == [("t.jsonl:1", True), ("t.jsonl:2", True)]


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.jsonl")
    for place in (tmp_path / "rows.jsonl", tmp_path):
        with pytest.raises(UsageError, match="not a regular file"):
            list(rows_in(place))


def test_a_large_file_of_json_is_refused_with_advice_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "rows.json").open("wb") as file:
        file.truncate(60 << 20)
    with pytest.raises(UsageError, match="larger than 16 MiB") as refused:
        list(rows_in(tmp_path / "rows.json"))
    assert "jq -c" in refused.value.hint


def test_a_table_with_a_million_columns_or_an_endless_line_is_refused(tmp_path: Path) -> None:
    wide, long = tmp_path / "wide.csv", tmp_path / "long.csv"
    wide.write_text("," * 1_000_000 + "\n")
    long.write_text("question,answer\n" + "x" * (LONGEST_LINE + 1))
    for place, said in ((wide, "1,000 columns"), (long, "long.csv:2 is longer than 16 MiB")):
        with pytest.raises(UsageError, match=said):
            list(rows_in(place))


def test_a_row_with_more_values_than_a_problem_has_is_refused_alone(tmp_path: Path) -> None:
    place = tmp_path / "rows.jsonl"
    good = '{"question": "1+1?", "answer": "2"}\n'
    place.write_text(good + '{"a": [' + "0," * 200_000 + "0]}\n" + good)
    assert [row.problem for row in rows_in(place)] == ["", "more than 200000 values", ""]


def parquet(place: Path, columns: dict[str, tuple[list[object], str]]) -> Path:
    core, io = pytest.importorskip("arro3.core"), pytest.importorskip("arro3.io")
    made = {name: core.Array(values, type=getattr(core.DataType, kind)()) for name, (values, kind) in columns.items()}
    if "due" in made:
        made["due"] = made["due"].cast(core.DataType.date32())
    io.write_parquet(core.Table.from_pydict(made), place, compression="zstd(3)")
    return place


def test_a_typed_table_is_read_as_text_and_plain_values(tmp_path: Path) -> None:
    columns: dict[str, tuple[list[object], str]] = {
        "question": (["Wie gro\xdf?"], "string"),
        "due": ([19_844], "int32"),
        "score": ([float("nan")], "float64"),
        "picture": ([b"x"], "binary"),
    }
    [row] = rows_in(parquet(tmp_path / "t.parquet", columns))
    values = {"question": "Wie gro\xdf?", "due": "2024-05-01", "score": None, "picture": None}
    assert row == ("t.parquet:1", values, "")


def test_a_small_parquet_file_that_decompresses_far_beyond_its_size_is_refused(tmp_path: Path) -> None:
    place = parquet(tmp_path / "t.parquet", {"question": (["x" * (17 << 20)] * 3, "string")})
    assert place.stat().st_size < 20_000
    with pytest.raises(UsageError, match=r"t\.parquet:1 is longer than 16 MiB"):
        list(rows_in(place))
    with pytest.raises(UsageError, match="they need more than 48 MiB"):
        list(_parquet(place, memory=48 << 20))


@pytest.mark.parametrize("line", ['"unterminated', '"a" "b"', '{"a": 1', "[1]"])
def test_a_decoder_that_is_cut_off_or_taken_over_is_one_message(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.parquet").write_bytes(own_files.PARQUET * 2)
    monkeypatch.setattr(own_files, "_DECODER", (sys.executable, "-c", f"print({line!r})"))
    with pytest.raises(UsageError, match=r"its decoder (was cut off|stopped)") as caught:
        list(own_files.rows_in(tmp_path / "a.parquet"))
    assert caught.value.hint


@pytest.mark.parametrize("size", [b"\x82\x80\x80", b"\xff\xff\xff"])
def test_a_parquet_page_that_lies_about_its_size_does_not_get_past_the_limit(tmp_path: Path, size: bytes) -> None:
    place = parquet(tmp_path / "t.parquet", {"question": (["x" * (17 << 20)] * 3, "string")})
    whole = place.read_bytes()
    assert whole[4:7] == b"\x15\x04\x15"  # a page's kind and, from byte 7, its size decompressed, of four bytes
    place.write_bytes(whole[:7] + size + whole[10:])
    with pytest.raises(UsageError, match=r"cannot be read as Parquet after 0 rows|they need more than 48 MiB"):
        list(_parquet(place, memory=48 << 20))
