"""Packages of the owner's for an adapter: what is read of a folder or a wheel, and what is refused."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from curriculum.adapters import ADAPTERS
from curriculum.adapters.npm import npm_package
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
        wheel.writestr("my_env-1.0.dist-info/RECORD", "")
    found = package_at(tmp_path / "my_env-1.0-py3-none-any.whl")
    assert found.name == "my_env"
    assert sorted(found.files) == ["my_env-1.0.dist-info/METADATA", "my_env/__init__.py"]


PROJECT = """
[project]
name = "my-env"
version = "2.1"
dependencies = ["numpy>=1.19", "requests"]
[project.optional-dependencies]
dev = ["pytest"]
[project.scripts]
serve = "my_env.server.app:main"
"""


def test_a_folder_brings_what_its_project_requires_its_version_and_its_entry_point(folder: Path) -> None:
    (folder / "pyproject.toml").write_text(PROJECT)
    found = package_at(folder)
    assert found.requires == ("numpy>=1.19", "requests")
    assert b"from my_env.server.app import main" in found.files["my_env/__main__.py"]
    assert b"Version: 2.1" in found.files["my_env-2.1.dist-info/METADATA"]


def test_a_project_folder_stands_for_the_one_package_in_it(tmp_path: Path, folder: Path) -> None:
    project = tmp_path / "Project 1"
    (project / "src").mkdir(parents=True)
    (project / "pyproject.toml").write_text(PROJECT)
    folder.rename(project / "src" / "my_env")
    found = package_at(project)
    assert (found.name, found.requires) == ("my_env", ("numpy>=1.19", "requests"))
    assert "my_env/server/app.py" in found.files


def test_a_folder_without_a_project_brings_what_its_list_of_requirements_says(folder: Path) -> None:
    (folder / "server" / "requirements.txt").write_text("# ours\nnumpy>=1  # arrays\n\nrequests\n")
    assert package_at(folder).requires == ("numpy>=1", "requests")


@pytest.mark.parametrize("text", ["[project", "project = 1", "[project]\ndependencies = 3", "a = " + "[" * 9_000])
def test_a_project_that_cannot_be_read_is_refused(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(text)
    with pytest.raises(CurriculumError, match="cannot be read"):
        package_at(folder)


def test_a_wheel_brings_its_requirements_without_extras_and_starts_by_its_entry_point(tmp_path: Path) -> None:
    about = "my_env-1.0.dist-info"
    with zipfile.ZipFile(tmp_path / "my_env-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("my_env/__init__.py", "def main(): pass\n")
        needs = 'Requires-Dist: mcp[cli]>=1.6\nRequires-Dist: pytest; extra == "dev"\n'
        wheel.writestr(f"{about}/METADATA", f"Name: my-env\nVersion: 1.0\n{needs}")
        wheel.writestr(f"{about}/entry_points.txt", "[console_scripts]\nmy-env = my_env:main\nx = other:main\n[y]\n")
    found = package_at(tmp_path / "my_env-1.0-py3-none-any.whl")
    assert found.requires == ("mcp[cli]>=1.6",)
    assert found.files["my_env/__main__.py"] == b"import sys\n\nfrom my_env import main\n\nsys.exit(main())\n"


@pytest.mark.parametrize("name", ["npm:", "npm:../x", "npm:-g", "npm:a b", "npm:@a", "npm:x@--y", "npm:file:x"])
def test_what_is_no_name_of_npm_is_not_asked_for(name: str) -> None:
    with pytest.raises(CurriculumError, match="invalid npm package"):
        npm_package(name)


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
