"""Guests may import what the installer built, and nothing tells them where on the host it lies."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from runtime.backends.packages import DIGEST, INSIDE, find_packages
from runtime.backends.rootfs import digest, ensure_root, inspect_python
from runtime.errors import RefusedError
from runtime.sessions import Sessions

HINT = "./install.sh builds these packages"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as the installer leaves it, with one small module."""
    made = tmp_path / "packages"
    made.mkdir()
    (made / "answers.py").write_text("ANSWER = 42\n")
    (made / DIGEST).write_text("0123\n")
    return made


def test_a_folder_that_the_installer_did_not_finish_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="no guest packages") as caught:
        find_packages(tmp_path)
    assert "install.sh" in caught.value.hint


def test_other_packages_give_another_root(folder: Path) -> None:
    python, packages = inspect_python(None), find_packages(folder)
    assert packages is not None
    assert len({digest(python), digest(python, packages), digest(python, packages._replace(digest="4567"))}) == 3


def test_a_root_holds_them_readable_and_without_their_record(folder: Path, tmp_path: Path) -> None:
    root = ensure_root(tmp_path / "roots", packages_path=folder)
    assert [path.name for path in (root / INSIDE).iterdir()] == ["answers.py"]
    assert stat.S_IMODE((root / INSIDE).stat().st_mode) == 0o755


@pytest.mark.parametrize("name", ["numpy", "scipy.integrate", "sympy", "mpmath"])
def test_a_guest_imports_what_was_built_for_it(pool: Sessions, name: str) -> None:
    assert find_packages() is not None, HINT
    with pool.open() as session:
        result = session.run(f"import {name} as found\nprint(found.__name__, found.__file__)")
    assert result.output.startswith(f"{name} /opt/packages/"), result


def test_what_was_compiled_names_no_folder_of_the_host(pool: Sessions) -> None:
    assert find_packages() is not None, HINT
    with pool.open() as session:
        result = session.run("import sympy.core.add as found\nprint(found.Add.flatten.__code__.co_filename)")
    assert result.output == "/opt/packages/sympy/core/add.py\n", result
