"""Reads a repository, a folder or a source distribution, into files, sources, tests and requirements. Runs nothing.

Invariants: only regular text files of bounded size and number are read; links, hidden folders and documentation are
left out. A git repository is read at its last commit, without its history. Requirements are those that its metadata
states; code that computes them (setup.py) is not run, and only literal lists in it are read.
"""

from __future__ import annotations

import ast
import email
import os
import re
import stat
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from curriculum.contract.errors import CurriculumError
from curriculum.repositories.history import head_files, is_git
from verifiers.files.spec import FILE_CHARS, MOST_TREE, PATH

MOST_FILES, MOST_BYTES = 20_000, 256 << 20
LEAST_LINES = 50
LEFT_OUT = {"doc", "docs", "example", "examples", "benchmarks", "node_modules", "build", "dist", "site", "__pycache__"}
TESTS = {"test", "tests"}
NATIVE = (".c", ".cc", ".cpp", ".pyx", ".rs", ".f90", ".so", ".pyd", ".go")
CONFIGURATION = {
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "pytest.ini",
    "setup.py",
    "PKG-INFO",
    "readme.md",
    "readme.rst",
}
NOT_MODULES = {"setup", "conftest", "noxfile", "tasks", "fabfile", "manage"}
TEST_EXTRAS = {"test", "tests", "testing"}
TEST_IMPORTS = {"hypothesis": "hypothesis", "freezegun": "freezegun", "pytest_mock": "pytest-mock", "pytz": "pytz",
                "parameterized": "parameterized", "mock": "mock", "six": "six"}  # fmt: skip
"""Packages that tests import without a declaration, by import name."""


class Repository(NamedTuple):
    name: str
    files: Mapping[str, str]
    """Texts by path: sources, tests, data and settings."""
    sources: tuple[str, ...]
    """Python files that may have faults and may be repaired."""
    tests: tuple[str, ...]
    """Python files with tests."""
    path: tuple[str, ...]
    """Folders from which Python imports the repository."""
    requires: tuple[str, ...]
    licence: str

    @property
    def test_sources(self) -> list[str]:
        """Python files that belong to the tests, helpers included."""
        return [path for path in self.files if path.endswith(".py") and is_test(path)]


def read_repository(place: Path, licence: str = "") -> Repository:
    """Reads a repository at a path. Raises CurriculumError, which says what to change, for one that cannot be used."""
    try:
        found = dict(_bounded(place, _entries(place)))
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, RuntimeError) as error:
        hint = "name a folder, a git repository or a source distribution (.tar.gz, .zip)"
        raise CurriculumError(f"{place} cannot be read: {error}", hint=hint) from error
    tops = {path.partition("/")[0] for path in found}
    if len(tops) == 1 and not any("/" not in path for path in found):  # an archive has one folder
        top = f"{tops.pop()}/"
        found = {path.removeprefix(top): data for path, data in found.items()}
    files = {path: text for path, data in found.items() if _wanted(path) and (text := _text(data)) is not None}
    roots = _roots(files)
    sources = tuple(path for path in sorted(files) if _is_source(path, roots))
    about = _Metadata(found)
    name = about.name or place.name.partition(".")[0]
    _require_usable(place, found, files, sources)
    licence = (
        licence or about.licence or next((path for path in found if re.match(r"(?i)(licen[cs]e|copying)", path)), "")
    )
    if not licence:
        raise CurriculumError(f"{place} states no licence", hint="if you may use it, say so with --license TEXT")
    tests = tuple(path for path in sorted(files) if re.search(r"(^|/)(test_\w+|\w+_test|tests?)\.py$", path))
    tests = tuple(path for path in tests if is_test(path))
    if not tests:
        raise CurriculumError(f"{place} has no tests", hint="add files test_*.py, which pytest collects")
    if len(files) > MOST_TREE:
        kept = {*sources, *(path for path in files if is_test(path) or path.lower() in CONFIGURATION)}
        files = {path: text for path, text in files.items() if path in kept}
    if len(files) > MOST_TREE:
        raise CurriculumError(
            f"{place} has {len(files)} sources and test files: a terminal has at most {MOST_TREE}",
            hint="name the folder of one package, with its tests",
        )
    if about.metadata and not any(".egg-info/" in path for path in files):
        files[f"{roots[0]}/{about.metadata[0]}".removeprefix("./")] = about.metadata[1]
    requires = (*about.requires, *_undeclared(files, about.requires))
    return Repository(name, files, sources, tests, tuple(dict.fromkeys((*roots, "."))), requires, licence[:500])


def is_test(path: str) -> bool:
    """True if a Python file belongs to the tests."""
    *folders, name = path.split("/")
    return bool(TESTS & set(folders)) or bool(re.fullmatch(r"test_\w+\.py|\w+_test\.py|conftest\.py|tests?\.py", name))


def _entries(place: Path) -> Iterator[tuple[str, int, Any]]:
    """Yields path, size and a function that reads it, of each regular file."""
    if place.is_dir() and is_git(place):
        yield from ((path, len(data), lambda data=data: data) for path, data in head_files(place, MOST_FILES))
    elif place.is_dir():
        for above, folders, names in os.walk(place):
            folders[:] = sorted(one for one in folders if not one.startswith(".") and one not in LEFT_OUT)
            for name in sorted(names):
                file = Path(above, name)
                if stat.S_ISREG((about := file.lstat()).st_mode):
                    yield str(file.relative_to(place)), about.st_size, file.read_bytes
    elif zipfile.is_zipfile(place):
        with zipfile.ZipFile(place) as opened:
            for entry in opened.infolist():
                if not entry.is_dir():
                    yield entry.filename, entry.file_size, lambda entry=entry: opened.read(entry)
    else:
        with tarfile.open(place) as archive:
            for member in archive:
                if member.isreg() and (stream := archive.extractfile(member)) is not None:
                    yield member.name, member.size, stream.read


def _bounded(place: Path, entries: Iterable[tuple[str, int, Any]]) -> Iterator[tuple[str, bytes]]:
    count = size = 0
    for path, length, read in entries:
        count, size = count + 1, size + length
        if count > MOST_FILES or size > MOST_BYTES:
            raise CurriculumError(
                f"{place} has more than {MOST_FILES:,} files or {MOST_BYTES >> 20} MiB",
                hint="name the folder of one package, with its tests",
            )
        yield path, read() if length <= 4 * FILE_CHARS else b"\0"


def _text(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text or len(text) > FILE_CHARS else text


def _wanted(path: str) -> bool:
    *folders, name = path.split("/")
    if not PATH.fullmatch(path) or LEFT_OUT & set(folders) or any(one.startswith(".") for one in path.split("/")):
        return False
    return bool(folders) or name.endswith(".py") or name in CONFIGURATION or name.lower() in CONFIGURATION


def _roots(files: Mapping[str, str]) -> list[str]:
    for root in ("src", "lib"):
        if (
            any(path.startswith(f"{root}/") and path.endswith(".py") for path in files)
            and f"{root}/__init__.py" not in files
        ):
            return [root]
    return ["."]


def _is_source(path: str, roots: list[str]) -> bool:
    if not path.endswith(".py") or is_test(path):
        return False
    if roots != ["."]:
        return path.startswith(f"{roots[0]}/")
    return "/" in path or path.removesuffix(".py") not in NOT_MODULES


def _require_usable(
    place: Path, found: Mapping[str, bytes], files: Mapping[str, str], sources: tuple[str, ...]
) -> None:
    """Raises CurriculumError for native code, and for too little Python."""
    native = next((path for path in found if path.endswith(NATIVE) and not is_test(path) and _wanted(path)), "")
    if native or "ext_modules" in files.get("setup.py", ""):
        raise CurriculumError(
            f"{place} has native extensions ({native or 'setup.py'}), which are not built here",
            hint="name a repository in Python alone",
        )
    lines = sum(files[path].count("\n") for path in sources)
    if lines < LEAST_LINES:
        raise CurriculumError(
            f"{place} has {lines} lines of Python: too few to make tasks of",
            hint=f"name the folder that has the package and its tests; at least {LEAST_LINES} lines",
        )


class _Metadata:
    """Name, licence and requirements that a repository's metadata states."""

    def __init__(self, found: Mapping[str, bytes]) -> None:
        self.name = self.licence = ""
        self.requires: tuple[str, ...] = ()
        self.metadata: tuple[str, str] | None = None
        version = "0"
        if (info := _text(found.get("PKG-INFO", b"\0"))) is not None:
            message = email.message_from_string(info)
            self.name, version = str(message.get("Name", "")), str(message.get("Version", "0"))
            terms = [str(message.get("License-Expression") or message.get("License") or "")]
            terms += [str(one) for one in message.get_all("Classifier", []) if str(one).startswith("License ::")]
            self.licence = next((one.splitlines()[0] for one in terms if one and one != "UNKNOWN"), "")
            self.requires = tuple(filter(None, map(_of_metadata, message.get_all("Requires-Dist", []))))
        try:
            project = tomllib.loads(_text(found.get("pyproject.toml", b"")) or "")
        except (ValueError, RecursionError):
            project = {}
        self._read_project(project if isinstance(project, dict) else {})
        lists = [_text(found.get(one, b"")) or "" for one in _lists(found)]
        self.requires += tuple(line for text in lists for line in _requirement_lines(text))
        if not self.requires and (setup := _text(found.get("setup.py", b"\0"))):
            self.requires = tuple(_of_setup(setup))
        if info is not None and re.fullmatch(r"[\w.-]+", self.name) and re.fullmatch(r"[\w.+!]+", version):
            head = f"Metadata-Version: 2.1\nName: {self.name}\nVersion: {version}\n"
            self.metadata = (f"{re.sub(r'[-.]+', '_', self.name)}-{version}.dist-info/METADATA", head)

    def _read_project(self, found: Mapping[str, Any]) -> None:
        project = found.get("project", {})
        self.name = self.name or str(project.get("name", ""))
        licence = project.get("license", "")
        self.licence = self.licence or str(licence.get("text", "") if isinstance(licence, dict) else licence)
        groups = [
            *dict(project.get("optional-dependencies", {})).items(),
            *dict(found.get("dependency-groups", {})).items(),
        ]
        listed = [*project.get("dependencies", [])]
        listed += [one for name, group in groups if name in TEST_EXTRAS for one in group]
        self.requires += tuple(one for one in listed if isinstance(one, str))


def _of_metadata(line: Any) -> str:
    """Returns a requirement of PKG-INFO; empty for one of an extra other than the tests'."""
    text, _, marker = " ".join(str(line).split()).partition(";")
    extra = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
    if extra is None:
        return f"{text};{marker}" if marker else text
    return text.strip() if extra[1] in TEST_EXTRAS else ""


def _lists(found: Mapping[str, bytes]) -> list[str]:
    wanted = r"(tests?/)?((dev|tests?)[-_])?requirements([-_](dev|tests?|testing))?\.txt|requirements/tests?\.txt"
    return [path for path in sorted(found) if re.fullmatch(wanted, path)]


def _requirement_lines(text: str) -> list[str]:
    lines = (line.partition(" #")[0].strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(("#", "-")) and "/" not in line]


def _of_setup(text: str) -> Iterator[str]:
    """Yields the literal lists `install_requires` and `tests_require` of a setup.py."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in ("install_requires", "tests_require"):
            try:
                listed = ast.literal_eval(node.value)
            except ValueError:
                continue
            yield from (one for one in listed if isinstance(one, str))


def _undeclared(files: Mapping[str, str], requires: Iterable[str]) -> list[str]:
    named = {re.split(r"[^A-Za-z0-9._-]", one, maxsplit=1)[0].lower() for one in requires}
    text = "\n".join(text for path, text in files.items() if path.endswith(".py") and is_test(path))
    used = [one for one in TEST_IMPORTS if re.search(rf"^\s*(import|from) {one}\b", text, re.MULTILINE)]
    used += ["pytest_mock"] if re.search(r"\bmocker\b", text) else []
    return sorted({TEST_IMPORTS[one] for one in used} - named)
