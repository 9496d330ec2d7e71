"""What every file of this project owes its reader, checked where a machine can."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import import_graph
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("appliance", "common", "curriculum", "policies", "runtime", "tui", "verifiers")
TEXT = {".py", ".md", ".toml", ".sh", ".tcss", ".service", ".json", ""}


@cache
def product() -> list[Path]:
    return [
        path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")) if "canaries" not in path.parts
    ]


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tracked() -> list[Path]:
    """Every text file that git knows, or every one below the root where git does not answer."""
    try:
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, timeout=240).stdout
        paths = [ROOT / name for name in names.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        below = [path for path in ROOT.rglob("*") if path.suffix != ".pyc"]
        hidden = {".git", ".venv", "assay.egg-info"} | {path.name for path in ROOT.glob(".*_cache")}
        paths = [path for path in below if hidden.isdisjoint(path.relative_to(ROOT).parts)]
    return [path for path in paths if path.is_file() and path.suffix in TEXT and path.name != "LICENSE"]


def found(pattern: str, paths: list[Path], flags: int = 0) -> list[str]:
    """`file:line` of every match; this file names the patterns and is left out. No pattern goes over a line's end, so
    that a file in which nothing is found needs no look at its lines."""
    expression = re.compile(pattern, flags)
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in paths
        if path != Path(__file__) and expression.search(text_of(path))
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if expression.search(line)
    ]


def test_every_module_says_in_its_first_lines_what_it_is() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in product()
        if path.read_text(encoding="utf-8").strip() and not ast.get_docstring(import_graph.parsed(path))
    ]
    assert silent == []


def test_nothing_is_left_for_later() -> None:
    assert found(r"\b(TODO|FIXME|XXX)\b|raise NotImplementedError|pragma: no cover", tracked()) == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = {"utils", "util", "helpers", "helper", "manager", "base", "common", "misc"}
    assert [str(path.relative_to(ROOT)) for path in product() if path.stem in empty] == []


def test_no_folder_holds_more_files_than_a_person_can_survey() -> None:
    counts = Counter(path.parent for path in [*product(), *(ROOT / "tests").rglob("*.py")])
    assert {str(folder.relative_to(ROOT)): count for folder, count in counts.items() if count > 26} == {}


def test_a_class_name_means_one_thing_in_the_whole_product() -> None:
    places: dict[str, list[str]] = {}
    for path in product():
        for node in import_graph.statements(path):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


OPENERS = re.compile(r"(What|Whether|How|Of|Is|Has|Holds|As|Was|Are|Does|Who|Which|Where|By)\b")
TRANSLATED = re.compile(
    r"\b(is|are|was) no\b|\bso many\b|\bby now\b|\botherwise than\b|\b(who|what)ever\b|\bis told\b|\bgoes on\b"
    r"|\bstands for\b|\bsays of\b",
    re.IGNORECASE,
)
MOST = {"docstrings that open so": 53, "docstrings that say so": 73, "other strings that say so": 52}
"""How often the product still opens or speaks like a translation. These counts may only fall."""


def documented(node: ast.AST) -> list[str]:
    """The docstrings of a module, with those of its classes, functions, constants and fields."""
    found = []
    for owner in ast.walk(node):
        body = getattr(owner, "body", None)
        if not isinstance(body, list):
            continue
        takes = isinstance(owner, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for before, line in zip([None, *body], body, strict=False):
            is_text = isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
            described = (before is None and takes) or isinstance(before, ast.Assign | ast.AnnAssign)
            if described and is_text and isinstance(line.value.value, str):
                found.append(line.value.value)
    return found


def test_the_language_of_the_product_only_gets_plainer() -> None:
    seen = dict.fromkeys(MOST, 0)
    places: dict[str, list[str]] = {name: [] for name in MOST}
    opens, says, other = MOST
    for path in product():
        tree = import_graph.parsed(path)
        texts = set(documented(tree))
        strings = [
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        for name, hits in (
            (opens, [text for text in texts if OPENERS.match(text.strip())]),
            (says, [text for text in texts if TRANSLATED.search(text)]),
            (other, [text for text in strings if text not in texts and TRANSLATED.search(text)]),
        ):
            seen[name] += len(hits)
            places[name] += [f"{path.relative_to(ROOT)}: {text.strip()[:90]!r}" for text in hits]
    more = {name: places[name] for name in MOST if seen[name] > MOST[name]}
    assert more == {}, "say it plainly: see CONTRIBUTING.md"


def test_no_file_knows_where_it_was_written() -> None:
    places = [re.escape(str(ROOT)) + r"(?!\w)", r"/home/[a-z]+/", r"/Users/[A-Za-z]+/", r"(?<![\w\"$/])/root/\w"]
    assert found("|".join(places), tracked()) == []


def test_text_speaks_of_the_project_and_not_of_the_work_on_it() -> None:
    assert found(r"\b(issue|ticket|pull request) ?#?\d+\b|\bas (you|the user) asked\b", tracked(), re.IGNORECASE) == []


def test_nothing_names_a_package_registry() -> None:
    registries = r"pypi\.org|pythonhosted\.org|deb\.debian\.org|archive\.ubuntu\.com|registry\.npmjs|ghcr\.io"
    inside = [path for path in tracked() if path.name != "test_install_script.py"]
    assert found(registries, inside) == []


def test_nothing_is_praised() -> None:
    praise = ("blazing", "seamless", "powerful", "cutting[- ]edge", "state of the art", "effortless", "game[- ]chang")
    assert found(rf"\b({'|'.join(praise)})", tracked(), re.IGNORECASE) == []


@pytest.mark.parametrize(
    "call",
    [
        r"\bpickle\.(load|loads|Unpickler)\b",
        r"(?<![\w.])eval\(",
        r"(?<!safetensors\.)\btorch\.load\(",
        r"\byaml\.(load|unsafe_load)\(",
    ],
)
def test_nothing_that_a_model_wrote_could_run_on_the_host(call: str) -> None:
    outside = [path for path in product() if "guest" not in path.parts]
    assert found(call, outside) == []


def test_no_exception_is_swallowed_without_a_word() -> None:
    swallowed = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in product()
        for node in import_graph.statements(path)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}))
        and all(isinstance(item, ast.Pass) for item in node.body)
    ]
    assert swallowed == []


def test_every_link_in_a_document_leads_somewhere() -> None:
    dead = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in tracked()
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8"))
        if "://" not in target and not (path.parent / target).exists()
    ]
    assert dead == []


def test_every_benchmark_can_be_started_by_its_path() -> None:
    """Beside `benchmarks/runtime.py` a script would take that for the package `runtime`."""
    ours = re.compile(rf"^from ({'|'.join(PACKAGES)}|benchmarks)\b", re.MULTILINE)
    for script in sorted((ROOT / "benchmarks").glob("*.py")):
        text = script.read_text(encoding="utf-8")
        first = ours.search(text)
        if first is not None and "argparse" in text:
            assert "sys.path.insert(0, " in text[: first.start()], f"{script.name} needs the project's folder first"
