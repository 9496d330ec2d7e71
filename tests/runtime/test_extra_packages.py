"""What is named as the way to a missing package is a command that installs it, and nothing of another's."""

from __future__ import annotations

import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from runtime.extra_packages import install_command

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", ["parquet", "plots", "ray", "inspect"])
def test_the_command_names_the_packages_and_the_interpreter(extra: str) -> None:
    interpreter, *rest = shlex.split(install_command(extra))
    assert (interpreter, rest[:3]) == (sys.executable, ["-m", "pip", "install"])
    assert [Requirement(one) for one in rest[3:]] == [Requirement(one) for one in EXTRAS[extra]]


def test_nothing_of_a_shells_is_in_it_bare() -> None:
    said = install_command("x", "/a b/python", ["one>=2; extra == 'x'", "two; extra == 'y'", "three"])
    assert said == "'/a b/python' -m pip install 'one>=2'"


def test_no_text_tells_anybody_to_install_the_program_by_its_name_from_an_index() -> None:
    places = [
        path
        for pattern in ("*.md", "docs/**/*.md", "appliance/**/*.py", "runtime/**/*.py")
        for path in ROOT.glob(pattern)
    ]
    said = ("pip install assay", "pip install " + "'assay")
    assert [path for path in places if any(one in path.read_text() for one in said)] == []
