"""The documents: every command line in them is one that the program takes, and every link leads somewhere."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from appliance.cli.main import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"(?:(?:^    .*\n)+\n?)+", re.MULTILINE)
INLINE = re.compile(r"`assay ([^`]+)`")
DRAWN = re.compile(r"\S {3,}[^#\s]")
"""A line of a drawing: a name, and what it does beside it."""
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
PIPES = ("|", ">", ">>", "<", "&&", ";", "&", "2>")


def typed_in(page: Path) -> list[str]:
    """The lines of a page's blocks that begin with `assay`, without what the shell does with them."""
    lines = [line.strip() for block in BLOCK.findall(page.read_text()) for line in block.splitlines()]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.startswith("assay ") and not DRAWN.search(line)]


def arguments(line: str) -> list[str]:
    words = shlex.split(line, comments=True)[1:]
    end = next((place for place, word in enumerate(words) if word in PIPES), len(words))
    return words[:end]


@cache
def program() -> Any:
    return typer.main.get_command(app)


def named(words: list[str]) -> Any:
    """The command that the first words name, which are taken away. Fails for a name that is no command's."""
    command = program()
    while hasattr(command, "list_commands") and words and re.fullmatch("[a-z][a-z-]*", words[0]):
        found = command.get_command(None, words[0])
        assert found is not None, words
        command, words[:] = found, words[1:]
    return command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_in_a_block_of_a_page_is_taken(page: Path) -> None:
    for line in typed_in(page):
        words = arguments(line)
        command = named(words)
        if not hasattr(command, "list_commands") and "--help" not in words:
            try:
                command.make_context("assay", words)
            except Exception as error:
                pytest.fail(f"{line}: {error}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_sentence_names_is_one(page: Path) -> None:
    for line in INLINE.findall(page.read_text()):
        if "|" not in line:
            named(line.replace("\n", " ").split())


def anchors(page: Path) -> set[str]:
    """Of its headings, as the sites that show Markdown make them."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text())
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_page_and_a_heading_that_are_there(page: Path) -> None:
    for name, anchor in LINK.findall(page.read_text()):
        if not name.startswith("http"):
            target = page.parent / name if name else page
            assert target.exists(), name
            assert not anchor or anchor in anchors(target), f"{name}#{anchor}"
