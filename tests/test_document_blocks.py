"""The documents: what stands in their blocks is what the program reads, and what Python there is runs."""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from appliance.cli.jobs.request import read_request
from appliance.config.configuration import Settings
from appliance.learning.recipes.recipe import Recipe
from appliance.planning.training_recipes import read_recipe
from appliance.settings.config_layers import ConfigError, Layer
from common.plugins.installed import GROUP, REFERENCE, SEAMS
from verifiers.checklists.files import checklist_from
from verifiers.programs.files import spec_of_toml

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
INDENTED = re.compile(r"(?:^(?:    .*)?\n)+", re.MULTILINE)
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^`([\w.]+)`\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SENTENCES = re.compile(r"(?m)^(?:import|from) \w")


def toml_in(page: Path) -> list[str]:
    """Its blocks that are TOML: fenced as such, or indented with a section or a key in them. A comment with the name of
    a file in it begins another block."""
    text = page.read_text()
    found = [content for language, content in FENCED.findall(text) if language == "toml"]
    for block in INDENTED.findall(text):
        lines = textwrap.dedent(block).splitlines()
        kept = [line for line in lines if not line.startswith("assay ")]
        try:
            if tomllib.loads("\n".join(kept)):
                found.append("\n".join(kept))
        except tomllib.TOMLDecodeError:
            assert not re.search(r"(?m)^\[+[a-z_.]+\]+ *$", block), f"neither TOML nor a command: {block}"
    return found


def as_config(text: str, folder: Path) -> None:
    """Keys of config.toml."""
    home = Layer("default", {"data": str(folder)})
    Settings.of_layers([home, Layer("the page", tomllib.loads(text))])


def as_recipe(text: str, folder: Path) -> None:
    (folder / "conversations.jsonl").write_text("{}\n")
    (folder / "my.toml").write_text(text)
    assert read_recipe(str(folder / "my.toml"), Recipe()).stages


def as_job(text: str, folder: Path) -> None:
    """The files that it names are on the same page, below their names."""
    for name, content in NAMED.findall((ROOT / "docs" / "jobs.md").read_text()):
        (folder / name).write_text(content)
    assert read_request(text.encode(), "job.toml").prepared(folder, NOW).submission.question


def as_program(text: str, folder: Path) -> None:
    assert spec_of_toml(text).function


def as_checklist(text: str, folder: Path) -> None:
    assert checklist_from(text, folder).items


def as_cases(text: str, folder: Path) -> None:
    """Rows of an index of canaries."""
    (case,) = tomllib.loads(text)["case"]
    assert case.keys() <= {"name", "spec", "rows", "suspected", "why"}


def as_distribution(text: str, folder: Path) -> None:
    """The pyproject.toml of a plug-in: its entry points are in groups that the product reads."""
    groups = tomllib.loads(text)["project"]["entry-points"]
    assert groups.keys() <= {GROUP + seam for seam in SEAMS}
    assert all(REFERENCE.fullmatch(value) for rows in groups.values() for value in rows.values())


READERS: Mapping[str, Callable[[str, Path], None]] = {
    "stages": as_recipe,
    "question": as_job,
    "claim": as_job,
    "statement": as_job,
    "checklist": as_job,
    "items": as_checklist,
    "function": as_program,
    "case": as_cases,
    "project": as_distribution,
}
"""By a key that only this kind of file has; what has none of them is configuration."""


def reader_of(text: str) -> Callable[[str, Path], None]:
    keys = tomllib.loads(text).keys()
    if {"function", "items"} & keys and not ({"check", "kind", "program"} & keys):
        return as_checklist if "items" in keys else as_program
    return next((reader for key, reader in READERS.items() if key in keys), as_config)


TOML = [(page, text) for page in PAGES for text in toml_in(page)]


@pytest.mark.parametrize(("page", "text"), TOML, ids=[f"{page.stem}-{n}" for n, (page, _) in enumerate(TOML)])
def test_what_a_page_has_one_write_is_read_by_what_it_belongs_to(page: Path, text: str, tmp_path: Path) -> None:
    reader_of(text)(text, tmp_path)


def test_no_kind_of_file_is_left_out() -> None:
    assert {reader_of(text) for _, text in TOML} == {as_config, *READERS.values()}


def python_in(page: Path) -> list[str]:
    text = page.read_text()
    blocks = [content for language, content in FENCED.findall(text) if language == "python"]
    blocks += [textwrap.dedent(block).strip() for block in INDENTED.findall(text)]
    return [block for block in blocks if SENTENCES.search(block)]


PYTHON = [(page, text) for page in PAGES for text in python_in(page)]
ELSEWHERE = {"openai": "asks a model: tests/appliance/gateway does so, with the loop of the page itself"}
"""Modules of Python in the pages that cannot be run here, and why."""


@pytest.mark.parametrize(("page", "text"), PYTHON, ids=[f"{page.stem}-{n}" for n, (page, _) in enumerate(PYTHON)])
def test_the_python_of_a_page_is_python_and_runs(page: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = compile(text, str(page), "exec")
    if not any(f"from {module} import" in text for module in ELSEWHERE):
        exec(code, {})
        assert "pass" in capsys.readouterr().out


def test_a_key_that_does_not_exist_would_be_found(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=re.escape("unknown key model.learner")):
        as_config("[model]\nlearner = 2\n", tmp_path)
