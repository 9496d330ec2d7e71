"""A file that came with a job is kept by its digest, and a damaged one is made whole by giving it again."""

from __future__ import annotations

from pathlib import Path

from appliance.jobs.lifecycle import JobFiles


def test_a_damaged_file_is_whole_when_it_is_given_again(tmp_path: Path) -> None:
    files = JobFiles(tmp_path)
    digest = files.put(b"given")
    (tmp_path / "files" / digest).write_bytes(b"broken")
    assert files.put(b"given") == digest
    assert (tmp_path / "files" / digest).read_bytes() == b"given"
    assert [path.name for path in (tmp_path / "files").iterdir()] == [digest]
