"""Specs of files that decide nothing are refused, and so is whatever is no submission: without any sandbox."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tables import table

from verifiers.contract.errors import SpecError
from verifiers.files.spec import FilesSpec, read, same_lines
from verifiers.files.verifier import check

NOTE = FilesSpec.model_validate({"declared": ["a/note.txt"], "files": [{"path": "a/note.txt", "equals": "x"}]})


@pytest.mark.parametrize(
    "fields",
    [
        {"declared": ["a"]},
        {"declared": ["a", "a"], "files": [{"path": "a", "equals": "x"}]},
        {"declared": ["a"], "files": [{"path": "b", "equals": "x"}]},
        {"declared": ["a"], "files": [{"path": "a", "equals": " \n"}]},
        {"declared": ["a"], "files": [{"path": "a"}]},
        {"declared": ["a"], "commands": [{"command": ["sh", "a"]}]},
        {
            "declared": ["a", "b"],
            "commands": [{"command": ["b"], "stdout": "", "files": [{"path": "a/c", "text": ""}]}],
        },
    ],
)
def test_a_spec_that_could_not_fail_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        check(FilesSpec.model_validate(fields))


@table("path", ["../a", "/a", "a/../b", ".a", "a//b", "", "a\n", "a b"])
def test_a_path_that_leads_elsewhere_is_no_path(path: str) -> None:
    with pytest.raises(ValueError, match="declared"):
        FilesSpec.model_validate({"declared": [path]})


@table(
    "data",
    [
        {},
        [],
        None,
        {"a/note.txt": "x"},
        {"a/note.txt": {"text": "x"}},
        {"a/note.txt": {"text": "x", "mode": 644}},
        {"a/note.txt": {"text": "x", "mode": "4755"}},
        {"a/note.txt": {"text": ["x"], "mode": "644"}},
        {"a/note.txt": {"text": "x\0", "mode": "644"}},
        {"a/note.txt": {"text": "\ud800", "mode": "644"}},
        {"a/note.txt": {"text": "x" * 200_000, "mode": "644"}},
        {"a/note.txt": {"text": "x", "mode": "644"}, "b": {"text": "x", "mode": "644"}},
        {"a/note.txt": {"problem": "a link"}},
    ],
)  # fmt: skip
def test_what_is_no_submission_is_told_in_a_sentence(data: Any) -> None:
    assert isinstance(read(NOTE, json.dumps(data)), str)


@pytest.mark.parametrize("text", ["", "no json", "[" * 100_000, "x" * (1 << 19)])
def test_hostile_text_is_no_submission(text: str) -> None:
    assert isinstance(read(NOTE, text), str)


def test_blanks_at_ends_of_lines_do_not_count_and_others_do() -> None:
    assert same_lines("a  \r\nb\n\n\n", "a\nb")
    assert not same_lines(" a\nb", "a\nb")
    assert not same_lines("a\n\nb", "a\nb")
