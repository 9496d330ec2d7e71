"""Which Lean is found, and what is said of it, without starting it."""

from __future__ import annotations

from pathlib import Path

import pytest

import verifiers.lean.toolchain as module
from verifiers.lean.toolchain import Toolchain, find, how_to_have_one, program, project_folders, tools


@pytest.fixture(autouse=True)
def _none_from_install_sh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "OWN", tmp_path / "environment-lean")


def elan(home: Path, *names: str, like: Toolchain) -> Path:
    for name in names:
        compiled = home / ".elan" / "toolchains" / name / "lib" / "lean"
        compiled.mkdir(parents=True)
        for file in like.compiled.iterdir():
            (compiled / file.name).symlink_to(file)
    return home / ".elan" / "toolchains"


def test_a_configured_folder_is_taken_and_no_other(toolchain: Toolchain, tmp_path: Path) -> None:
    elan(tmp_path, "leanprover--lean4---v4.9.0", like=toolchain)
    environ = {"HOME": str(tmp_path), "PATH": ""}
    found = find(toolchain.root, environ=environ)
    assert found is not None
    assert (found.root, found.source) == (toolchain.root, "configured")
    assert find(tmp_path / "nothing", environ=environ) is None
    found = find(environ=environ | {"LEAN_TOOLCHAIN": str(toolchain.root)})
    assert found is not None
    assert found.source == "configured"


def test_elans_default_comes_first_and_then_the_newest(toolchain: Toolchain, tmp_path: Path) -> None:
    names = ("leanprover--lean4---v4.9.0", "leanprover--lean4---v4.20.1", "leanprover--lean4---v4.20.0-rc2")
    folder = elan(tmp_path, *names, like=toolchain)
    environ = {"HOME": str(tmp_path), "PATH": ""}
    found = find(environ=environ)
    assert found is not None
    assert (found.root.name, found.source) == (names[1], "elan")
    (folder.parent / "settings.toml").write_text('default_toolchain = "leanprover/lean4:v4.9.0"\n')
    found = find(environ=environ)
    assert found is not None
    assert found.root.name == names[0]


def test_a_default_may_be_named_as_people_name_it(toolchain: Toolchain, tmp_path: Path) -> None:
    folder = elan(tmp_path, "leanprover--lean4---v4.9.0", "leanprover--lean4---v4.20.1", "mine", like=toolchain)
    environ = {"HOME": str(tmp_path), "PATH": ""}
    for name, expected in (
        ("4.9.0", "leanprover--lean4---v4.9.0"),
        ("v4.9.0", "leanprover--lean4---v4.9.0"),
        ("mine", "mine"),
        ("leanprover/lean4:stable", "leanprover--lean4---v4.20.1"),
        ("leanprover/lean4:v4.1.0", "leanprover--lean4---v4.20.1"),
    ):
        (folder.parent / "settings.toml").write_text(f'version = "12"\ndefault_toolchain = "{name}"\n')
        found = find(environ=environ)
        assert found is not None
        assert found.root.name == expected


def test_a_toolchain_that_is_half_there_is_none(toolchain: Toolchain, tmp_path: Path) -> None:
    folder = elan(tmp_path, "leanprover--lean4---v4.9.0", "leanprover--lean4---v4.20.1", like=toolchain)
    (folder / "leanprover--lean4---v4.20.1" / "lib" / "lean" / "Init.olean").unlink()
    found = find(environ={"HOME": str(tmp_path), "PATH": ""})
    assert found is not None
    assert found.root.name == "leanprover--lean4---v4.9.0"


def test_a_projects_own_toolchain_is_taken_and_no_other(toolchain: Toolchain, tmp_path: Path) -> None:
    elan(tmp_path, "leanprover--lean4---v4.9.0", "leanprover--lean4---v4.20.1", like=toolchain)
    project = tmp_path / "project"
    project.mkdir()
    environ = {"HOME": str(tmp_path), "PATH": "", "LEAN_PROJECT": str(project)}
    for named, expected in (
        ("leanprover/lean4:v4.9.0\n", "leanprover--lean4---v4.9.0"),
        ("leanprover/lean4:nightly", "leanprover--lean4---v4.20.1"),
        ("leanprover/lean4:v4.10.0", None),
    ):
        (project / "lean-toolchain").write_text(named)
        found = find(environ=environ)
        assert (found.root.name if found else None) == expected
    assert "elan toolchain install leanprover/lean4:v4.10.0" in how_to_have_one(environ)
    assert "LEAN_TOOLCHAIN" in how_to_have_one(environ | {"LEAN_TOOLCHAIN": str(tmp_path)})
    assert "elan" in how_to_have_one({})
    found = find(toolchain.root, environ=environ)
    assert found is not None
    assert found.source == "configured"


def test_the_one_of_install_sh_comes_before_elans_and_serves_a_project_of_its_version(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    elan(tmp_path, "leanprover--lean4---v4.9.0", like=toolchain)
    module.OWN.symlink_to(toolchain.root)
    environ = {"HOME": str(tmp_path), "PATH": ""}
    found = find(environ=environ)
    assert found is not None
    assert (found.root, found.source) == (module.OWN, "install.sh")
    project = tmp_path / "project"
    project.mkdir()
    for named, source in ((f"leanprover/lean4:v{toolchain.version}", "install.sh"), ("v4.9.0", "elan")):
        (project / "lean-toolchain").write_text(named)
        found = find(environ=environ | {"LEAN_PROJECT": str(project)})
        assert found is not None
        assert found.source == source


def test_elan_may_live_elsewhere(toolchain: Toolchain, tmp_path: Path) -> None:
    folder = elan(tmp_path, "leanprover--lean4---v4.9.0", like=toolchain)
    found = find(environ={"ELAN_HOME": str(folder.parent), "HOME": "/nowhere", "PATH": ""})
    assert found is not None
    assert found.source == "elan"


def test_lean_on_the_path_is_found_where_it_really_lies(toolchain: Toolchain, tmp_path: Path) -> None:
    own = elan(tmp_path, "mine", like=toolchain) / "mine"
    (own / "bin").mkdir()
    (own / "bin" / "lean").write_text("#!/bin/sh\n")
    (own / "bin" / "lean").chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "lean").symlink_to(own / "bin" / "lean")
    found = find(environ={"HOME": "/nowhere", "PATH": str(tmp_path / "bin")})
    assert found is not None
    assert (found.root, found.source) == (own, "PATH")


def test_no_lean_is_none(tmp_path: Path) -> None:
    assert find(environ={"HOME": str(tmp_path), "PATH": str(tmp_path)}) is None
    assert tools(None) == {}


def test_what_it_is_is_read_from_its_files(toolchain: Toolchain) -> None:
    assert toolchain.version == "4.35.0"
    assert toolchain.has == ("Init",)
    assert tools(toolchain) == {"lean": "4.35.0"}
    description = toolchain.describe()
    assert description["lean"] == "4.35.0"
    assert description["libraries"] == "Init"


def test_a_projects_packages_are_found(toolchain: Toolchain, tmp_path: Path) -> None:
    built = tmp_path / ".lake" / "packages" / "mathlib" / ".lake" / "build" / "lib" / "lean"
    built.mkdir(parents=True)
    (built / "Mathlib.olean").write_bytes(b"")
    assert project_folders(tmp_path) == (built,)
    found = find(toolchain.root, projects=project_folders(tmp_path))
    assert found is not None
    assert found.has == ("Init", "Mathlib")
    assert str(built) in program(found).environment["LEAN_PATH"]


def test_its_box_sees_what_it_needs_and_no_secrets(toolchain: Toolchain) -> None:
    made = program(toolchain)
    assert made.name == "lean"
    assert not made.address_space
    assert Path.home() not in made.folders
    assert all(folder.is_dir() for folder in made.folders)
