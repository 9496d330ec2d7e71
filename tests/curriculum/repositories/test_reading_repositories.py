"""A repository is read without running it, and what cannot be used is refused with what to do."""

from __future__ import annotations

import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from small_repository import CART, FILES, small_repository

from curriculum.contract.errors import CurriculumError
from curriculum.repositories import reading
from curriculum.repositories.faults import faults_in, reverted
from curriculum.repositories.history import changes
from curriculum.repositories.reading import Repository, read_repository


def git(place: Path, *arguments: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(place)}
    named = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *named, "-C", str(place), *arguments], check=True, capture_output=True, env=environment)


def refused(place: Path) -> CurriculumError:
    with pytest.raises(CurriculumError) as caught:
        read_repository(place)
    assert caught.value.hint
    return caught.value


def same(one: Repository) -> None:
    assert (one.name, one.licence, one.path) == ("tally", "MIT", ("src", "."))
    assert one.sources == ("src/tally/__init__.py", "src/tally/cart.py", "src/tally/text.py")
    assert one.tests == ("tests/test_cart.py", "tests/test_text.py")
    assert {path: one.files[path] for path in FILES} == FILES


def test_a_folder_an_archive_and_a_git_repository_are_the_same(tmp_path: Path) -> None:
    place = small_repository(tmp_path / "tally")
    same(read_repository(place))
    with tarfile.open(tmp_path / "tally-1.0.tar.gz", "w:gz") as archive:
        archive.add(place, "tally-1.0")
    same(read_repository(tmp_path / "tally-1.0.tar.gz"))
    with zipfile.ZipFile(tmp_path / "tally-1.0.zip", "w") as zipped:
        for path, text in FILES.items():
            zipped.writestr(f"tally-1.0/{path}", text)
    same(read_repository(tmp_path / "tally-1.0.zip"))
    git(place, "init", "-q")
    git(place, "add", ".")
    git(place, "commit", "-qm", "first")
    (place / "src" / "tally" / "cart.py").write_text("not committed\n")
    same(read_repository(place))


def test_reading_a_git_repository_runs_nothing_that_it_configures(tmp_path: Path) -> None:
    place, left = small_repository(tmp_path / "tally"), tmp_path / "left"
    git(place, "init", "-q")
    git(place, "add", ".")
    git(place, "commit", "-qm", "first")
    for key in ("core.fsmonitor", "core.pager", "diff.external", "core.sshCommand"):
        git(place, "config", key, f"touch {left}")
    read_repository(place)
    assert list(changes(place, {"src/tally/cart.py"})) == []
    assert not left.exists()


def test_a_commit_is_reverted_for_each_function_that_still_has_its_text(tmp_path: Path) -> None:
    place = small_repository(tmp_path / "tally")
    source = place / "src" / "tally" / "cart.py"
    source.write_text(CART.replace("return count\n", "return -count\n"))
    git(place, "init", "-q")
    git(place, "add", ".")
    git(place, "commit", "-qm", "first")
    source.write_text(CART)
    git(place, "commit", "-qam", "second")
    [change] = changes(place, {"src/tally/cart.py"})
    path = "src/tally/cart.py"
    [fault] = reverted(path, CART, change.before[path], change.after[path])
    assert (fault.kind, fault.functions[0].name) == ("commit", "tally.cart.Cart.remove")
    assert fault.files[path] == CART.replace("return count\n", "return -count\n")


def test_a_call_that_its_argument_replaces_is_no_swap_of_arguments() -> None:
    source = "def far(a, b):\n    return abs(min(b - a, key=len)) + round(sum(a), 2)\n"
    texts = {fault.files["far.py"] for fault in faults_in("far.py", source, "1")}
    assert source.replace("abs(min(b - a, key=len))", "min(b - a, key=len)") in texts
    assert source.replace("round(sum(a), 2)", "round(2, sum(a))") in texts


def test_a_repository_without_tests_is_refused(tmp_path: Path) -> None:
    place = small_repository(tmp_path / "tally")
    (place / "tests" / "test_cart.py").unlink()
    (place / "tests" / "test_text.py").unlink()
    assert "has no tests" in str(refused(place))


def test_native_extensions_are_refused(tmp_path: Path) -> None:
    place = small_repository(tmp_path / "tally")
    (place / "src" / "tally" / "_fast.c").write_text("int x;\n")
    assert "has native extensions (src/tally/_fast.c)" in str(refused(place))


def test_a_missing_licence_is_refused_unless_it_is_given(tmp_path: Path) -> None:
    place = small_repository(tmp_path / "tally")
    project = place / "pyproject.toml"
    project.write_text(project.read_text().replace('license = "MIT"\n', ""))
    assert "states no licence" in str(refused(place))
    assert read_repository(place, "ours").licence == "ours"
    (place / "LICENSE").write_text("Permission is granted\n")
    assert read_repository(place).licence == "LICENSE"


def test_too_many_files_are_refused_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_FILES", 100)
    place = small_repository(tmp_path / "tally")
    for number in range(101):
        (place / f"{number}.txt").write_text("x")
    assert "has more than 100 files" in str(refused(place))


def test_more_sources_than_a_terminal_has_are_refused(tmp_path: Path) -> None:
    place = small_repository(tmp_path / "tally")
    for number in range(201):
        (place / "src" / "tally" / f"m{number}.py").write_text("x = 1\n")
    assert "sources and test files: a terminal has at most 200" in str(refused(place))


@pytest.mark.parametrize("name", ["nothing", "broken.tar.gz", "empty"])
def test_what_is_no_repository_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.tar.gz").write_bytes(b"not an archive")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / name)


def test_requirements_come_from_metadata_and_literal_lists(tmp_path: Path) -> None:
    place = small_repository(tmp_path / "tally")
    (place / "PKG-INFO").write_text(
        "Metadata-Version: 2.1\nName: tally\nVersion: 1.0\nRequires-Dist: attrs>=20\n"
        "Requires-Dist: sphinx; extra == 'docs'\nRequires-Dist: hypothesis; extra == 'test'\n"
    )
    one = read_repository(place)
    assert one.requires == ("attrs>=20", "hypothesis")
    assert "Version: 1.0" in one.files["src/tally-1.0.dist-info/METADATA"]
    (place / "PKG-INFO").unlink()
    (place / "setup.py").write_text(
        "from setuptools import setup\nsetup(install_requires=['six>=1'], tests_require=[x])\n"
    )
    assert read_repository(place).requires == ("six>=1",)
