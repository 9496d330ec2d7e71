"""What the loader would take for the parts of a guest's Python."""

from __future__ import annotations

from pathlib import Path

from runtime.backends.rootfs import inspect_python, linked


def test_a_file_whose_library_is_missing_is_told_from_the_others(tmp_path: Path) -> None:
    whole, broken = Path("/bin/ls").resolve(), tmp_path / "broken"
    broken.write_bytes(whole.read_bytes().replace(b"libc.so.6\0", b"libq.so.6\0"))
    assert linked([whole, broken]).broken == {broken}
    assert linked([broken]).broken == {broken}
    assert linked([whole]).broken == linked([]).broken == set()


def test_the_libraries_of_all_files_are_found_where_the_loader_asks_for_them() -> None:
    python = inspect_python(None).executable
    both = linked([Path("/bin/ls"), python]).libraries
    assert both == linked([Path("/bin/ls")]).libraries | linked([python]).libraries
    assert all(library.is_absolute() and library.exists() for library in both)
    assert any(library.name.startswith("libc.so") for library in both)
