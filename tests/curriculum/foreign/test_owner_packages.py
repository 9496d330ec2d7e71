"""Packages of the owner's for an adapter: what is read of a folder or a wheel, and what is refused."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from curriculum.adapters import ADAPTERS
from curriculum.adapters.packages import MOST_FILES, guest_package, package_at
from curriculum.contract.errors import CurriculumError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "my_env"
    (package / "server").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "server" / "app.py").write_text("app = None\n")
    return package


def test_a_folder_is_read_as_it_stands_without_what_is_hidden_or_linked(folder: Path) -> None:
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_bytes(b"")
    (folder / ".secret").write_text("no")
    (folder / "passwd.txt").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")
    found = package_at(folder)
    assert (found.name, sorted(found.files)) == ("my_env", ["my_env/__init__.py", "my_env/server/app.py"])


def test_a_wheel_is_read_without_what_describes_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "my_env-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("my_env/__init__.py", "x = 1\n")
        wheel.writestr("my_env-1.0.dist-info/METADATA", "Name: my-env\n")
    found = package_at(tmp_path / "my_env-1.0-py3-none-any.whl")
    assert found == ("my_env", {"my_env/__init__.py": b"x = 1\n"})


@pytest.mark.parametrize(
    "path", ["../x/__init__.py", "/x/__init__.py", "x/../../y.py", "x/a b.py", "x/-c.py", "x//y.py"]
)
def test_a_wheel_that_leads_elsewhere_is_refused(tmp_path: Path, path: str) -> None:
    with zipfile.ZipFile(tmp_path / "bad.whl", "w") as wheel:
        wheel.writestr("x/__init__.py", "")
        wheel.writestr(path, "")
    with pytest.raises(CurriculumError):
        package_at(tmp_path / "bad.whl")


def test_what_is_no_package_is_refused_with_what_to_name(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "no.whl").write_text("no zip")
    for place in (tmp_path / "nothing", tmp_path / "no.whl", folder / "server", folder.rename(tmp_path / "Mine-2")):
        with pytest.raises(CurriculumError) as caught:
            package_at(place)
        assert caught.value.hint


def test_tasks_that_an_owner_gives_are_not_among_what_guests_get(folder: Path) -> None:
    (folder / "tasks.jsonl").write_text('{"answer": "42"}')
    (folder / "server" / "tasks.jsonl").write_text('{"answer": "42"}')
    code = ["my_env/__init__.py", "my_env/server/app.py"]
    assert sorted(guest_package(ADAPTERS["mcp"], folder).files) == code
    assert len(guest_package(ADAPTERS["openenv"], folder).files) == 4


def test_a_package_that_is_too_large_is_refused(folder: Path) -> None:
    for number in range(MOST_FILES):
        (folder / f"file{number}.txt").write_text("")
    with pytest.raises(CurriculumError, match="more than"):
        package_at(folder)
