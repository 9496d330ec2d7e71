"""A failed read becomes an expected error with a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.errors import HintedError, reading


class BadFileError(HintedError):
    exit_code = 2


@pytest.mark.parametrize(
    ("content", "name", "reason"),
    [
        (None, "file", "No such file or directory"),
        (b"\xff", "file", "not UTF-8 at byte 0"),
        (b"", "fi\0le", "embedded null byte"),
        (b"", "", "Is a directory"),
    ],
)
def test_a_failed_read_says_of_what_and_why(tmp_path: Path, content: bytes | None, name: str, reason: str) -> None:
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    with pytest.raises(BadFileError) as raised, reading("the list", BadFileError, "name another"):
        (tmp_path / name).read_text(encoding="utf-8")
    assert (str(raised.value), raised.value.hint) == (f"the list cannot be read: {reason}", "name another")


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(ZeroDivisionError), reading("the list", BadFileError):
        raise ZeroDivisionError
    with pytest.raises(ValueError, match="odd"), reading("the list", BadFileError):
        raise ValueError("odd")
    with pytest.raises(HintedError, match="inner") as raised, reading("the list", BadFileError):
        raise HintedError("inner")
    assert not isinstance(raised.value, BadFileError)
