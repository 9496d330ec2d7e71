"""Reads a Harbor task folder into a task, or gives the reason why it cannot be one.

Invariants: nothing of the folder runs here, links are not followed, and only plain text of bounded size is accepted. A
test in the folder runs beside the work it judges: its score is a foreign reward, not a verdict. A folder with
`tests/assay.json`, a spec of the kind `files`, is judged by that spec. The folders of its image are below /work here,
and all texts are rewritten accordingly (`places.py`). Each difference is in `notes`; each part that cannot be
reproduced is in `lost`. What it installs is a recipe, which `curriculum.own.harbor` carries out.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
import shlex
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from common.bounded_models import InvalidInputError, first_fault, read_model
from common.strict_json import Bounds, NotJsonError
from curriculum.contract.task import asked
from curriculum.contract.taskset import TaskDraft
from curriculum.environments.terminal.environment import TERMINAL, TERMINAL_OPENING, TerminalSetup
from curriculum.environments.terminal.harbor import dockerfile
from curriculum.environments.terminal.harbor import settings as task_settings
from curriculum.environments.terminal.harbor.dockerfile import HarborError, Image
from curriculum.environments.terminal.harbor.places import LOGS, TESTS, move, place, places_of
from curriculum.environments.terminal.harbor.settings import HarborSettings
from verifiers.contract.errors import SpecError
from verifiers.contract.kinds import AnswerForm
from verifiers.files.spec import FILE_CHARS, MOST_FILES, PATH, FilesSpec, ForeignTest, PlacedFile
from verifiers.files.verifier import check

OWN_CHECK = "tests/assay.json"
MOST = 300
DECLARED = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*){0,5}\Z")
PARTS = "name a Harbor task folder: task.toml, instruction.md, environment/Dockerfile, tests/test.sh"
APART = "/tmp/harbor-logs"  # noqa: S108 - of the guest
COMMAND_SECONDS = 60.0
"""Time limit of a command in a terminal with packages, in seconds."""
PYTEST = """if pytest /tests/test_outputs.py -rA; then score=1; else score=0; fi
echo $score > /logs/verifier/reward.txt
"""
"""Test of a folder that has only a file for pytest."""


class HarborRecipe(NamedTuple):
    """What has to be installed and run before a terminal of the task can be opened."""

    pip: tuple[str, ...] = ()
    apt: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    healthcheck: str = ""

    @property
    def installs(self) -> bool:
        return bool(self.pip or self.apt)


class HarborTask(NamedTuple):
    name: str
    draft: TaskDraft
    """Draft without an answer: the solution has not been run, and nothing is installed."""
    solution: tuple[PlacedFile, ...]
    """Files of the reference solution, for /work, beginning with its script; empty if the folder has none."""
    foreign: bool
    """True if only the folder's own test judges it."""
    notes: tuple[str, ...]
    """Differences from the folder's description."""
    about: str = ""
    """What its author says of it, in one line."""
    lost: tuple[str, ...] = ()
    """Parts of its description that cannot be reproduced."""
    recipe: HarborRecipe = HarborRecipe()


class FolderText(NamedTuple):
    text: str
    mode: str


def read_folder(folder: Path, *, without_network: bool = False) -> HarborTask:
    """Reads a Harbor task folder into a terminal task; `without_network` accepts one that asks for a network. Raises
    HarborError with the reason if the folder cannot be used."""
    texts = _texts(folder)
    settings = task_settings.read(_needed(texts, "task.toml").text, without_network=without_network)
    if any("compose" in name and name.startswith("environment/") for name in texts):
        raise HarborError("it needs several containers (docker compose)")
    if any(name.startswith("steps/") for name in texts):
        raise HarborError("it has several steps", hint="make a folder for each step: a task is one conversation")
    if "tests/Dockerfile" in texts:
        raise HarborError("its test needs an image of its own")
    image = dockerfile.read(_needed(texts, "environment/Dockerfile").text)
    workdir = settings.workdir or image.workdir
    instruction = _needed(texts, "instruction.md").text
    said = [instruction, *(one.text for name, one in texts.items() if name.startswith(("tests/", "solution/")))]
    if workdir.split("/")[1] in ("tests", "logs"):
        raise HarborError(f"its working folder is {workdir[:60]!a}, where its test and the test's results are")
    moved = places_of(image, workdir, [*said, *settings.artifacts])
    if outside := [one for one in settings.artifacts if place(one, moved) is None]:
        raise HarborError(f"its artifact {outside[0][:80]!a} is outside the folders that a terminal has")
    files = _environment(texts, image, moved)
    folders = _folders(image, files, moved)
    foreign = OWN_CHECK not in texts
    solution = _solution(texts, moved, settings.solution_variables)
    recipe, lost = _recipe(texts, image, settings, moved, foreign=foreign)
    notes = [f"a shell with small programs and Python replaces the image {image.base}", *settings.notes, *image.notes]
    own = ("/tests", "/logs", "/solution")
    notes += [f"{old} is {new} here" for old, new in moved.items() if old not in own or new == "/work"]
    if foreign:
        notes.append("only its own test judges it: the score is a foreign reward, not a verdict")
    if not solution:
        notes.append("it has no solution: nothing shows that it can be solved here")
    variables = tuple((name, move(value, moved)) for name, value in (*image.variables, *settings.variables))
    excluded = [(place(path, moved), one) for path, one in settings.excluded]
    world = {
        "files": [file.model_dump(mode="json") for file in files],
        "declared": [],
        "folders": folders,
        "variables": variables,
        "collect": tuple(_collecting(command, moved) for command in settings.collect),
        "excluded": excluded,
    }
    if recipe.installs:
        world |= {"seconds": COMMAND_SECONDS, "memory_mib": settings.memory_mib}
    instruction = move(instruction, moved)
    if foreign:
        spec = _foreign(settings, texts, instruction, world, moved)
        world["gathers"] = True
    else:
        spec = _own(texts[OWN_CHECK].text)
    world["declared"] = list(spec.declared)
    try:
        setup = TerminalSetup.model_validate(world)
        world = setup.model_dump(mode="json", exclude={*TerminalSetup.model_fields} - _set_by_task(setup))
    except ValidationError as error:
        raise HarborError(f"its files do not fit into a terminal: {first_fault(error)}") from error
    content = json.dumps([instruction, world, spec.model_dump(mode="json")])
    draft = TaskDraft(
        topic="harbor",
        key=f"harbor:{hashlib.sha256(content.encode()).hexdigest()[:20]}",
        messages=asked(
            instruction.strip()  # written by `export`
            if instruction.startswith(TERMINAL_OPENING)
            else f"{TERMINAL_OPENING}\n\n{instruction}\n\nSay so when you have finished."
        ),
        spec=spec,
        answer="",
        form=AnswerForm.WORLD,
        tools=tuple(tool.name for tool in TERMINAL.tools),
        environment=TERMINAL.name,
        world=world,
    )
    name = settings.name or folder.resolve().name[:100]
    notes = list(dict.fromkeys(notes))
    return HarborTask(name, draft, solution, foreign, tuple(notes), settings.about, tuple(lost), recipe)


def _collecting(command: str, moved: Mapping[str, str]) -> str:
    """Returns a command that runs before a terminal's files are taken. Its logs are outside /work until it has ended,
    because it may copy all of the task's folder into them."""
    if "/logs" not in command:
        return f"cd /work && {move(command, moved)}"
    own = move(command, {**moved, "/logs": APART})
    name = posixpath.basename(next((old for old, new in moved.items() if new == "/work"), "/work"))
    named = f"if [ -d work ]; then mv -T work {shlex.quote(name)}; fi; " if name != "work" else ""
    begin, end = f"mkdir -p {APART}/artifacts {LOGS} && cd /work && {{", f"cp -r {APART}/. /work/{LOGS}/"
    return f"{begin} {own}\n}} && cd {APART}/artifacts && {{ {named}{end}; }}"


def _set_by_task(setup: TerminalSetup) -> set[str]:
    """Returns the names of the fields that a task sets, and of those that every terminal has."""
    fields = TerminalSetup.model_fields.items()
    return {"files", "declared"} | {name for name, field in fields if getattr(setup, name) != field.default}


def _texts(folder: Path) -> dict[str, FolderText]:
    """Reads all files of a Harbor task folder, by path. Raises HarborError for links, binary files, or too many or too
    large ones."""
    if not folder.is_dir():
        raise HarborError(f"{folder} is not a folder", hint=PARTS)
    if not os.path.lexists(folder / "task.toml"):
        raise HarborError("the folder has no task.toml", hint=PARTS)
    found: dict[str, FolderText] = {}
    for here, folders, names in os.walk(folder):
        folders.sort()
        for name in [*folders, *sorted(names)]:
            path = Path(here, name)
            about = path.lstat()
            shown = path.relative_to(folder).as_posix()
            if stat.S_ISDIR(about.st_mode):
                continue
            if not stat.S_ISREG(about.st_mode):
                raise HarborError(f"{shown[:80]!a} is not a regular file", hint="put the file itself there")
            if about.st_size > FILE_CHARS or len(found) >= MOST:
                raise HarborError(f"{shown[:80]!a} is too large, or there are more than {MOST} files")
            try:
                text = path.read_bytes().decode()  # unchanged: its line ends may be the fault to repair
                found[shown] = FolderText(text, f"{about.st_mode & 0o777:03o}")
            except UnicodeDecodeError as error:
                hint = "leave it out: only text files are supported"
                raise HarborError(f"{shown[:80]!a} is not UTF-8 text", hint=hint) from error
            except OSError as error:
                raise HarborError(f"{shown[:80]!a} cannot be read: {error.strerror}") from error
    return found


def _needed(texts: Mapping[str, FolderText], name: str) -> FolderText:
    if name not in texts:
        raise HarborError(f"it has no {name}")
    return texts[name]


def _environment(texts: Mapping[str, FolderText], image: Image, moved: Mapping[str, str]) -> list[PlacedFile]:
    """Returns the files that the Harbor folder's image puts into /work at first."""
    build = {name.removeprefix("environment/"): one for name, one in texts.items() if name.startswith("environment/")}
    files: dict[str, PlacedFile] = {}
    for copied in image.copies:
        if copied.text is not None:
            taken = {copied.target: FolderText(copied.text, "644")}
        else:
            matches = dockerfile.matches(copied, list(build))
            if not matches:
                raise HarborError(f"its Dockerfile copies {' '.join(copied.sources)[:60]!a}, which does not exist")
            taken = {path: build[name] for name, path in matches.items() if name != "Dockerfile"}
        for path, one in taken.items():
            below = place(path, moved)
            if below is None or not PATH.match(below):
                raise HarborError(f"its Dockerfile puts {path[:60]!a} where a terminal has no place for it")
            files[below] = _placed(path, below, one._replace(mode=copied.mode or one.mode), moved)
    return list(files.values())


def _folders(image: Image, files: Sequence[PlacedFile], moved: Mapping[str, str]) -> list[str]:
    """Returns the folders that exist at first, relative to /work, beyond those of its files."""
    named = [place(path, moved) for path in image.folders]
    named += [new.removeprefix("/work/") for old, new in moved.items() if old != "/solution" and new != "/work"]
    taken = {file.path for file in files}
    return sorted({path for path in named if path and PATH.match(path) and path not in taken} - {TESTS, LOGS})


def _solution(
    texts: Mapping[str, FolderText], moved: Mapping[str, str], variables: Sequence[tuple[str, str]]
) -> tuple[PlacedFile, ...]:
    """Returns the files of a folder's reference solution, whose script sets its variables; none without its script."""
    names = [name for name in texts if name.startswith("solution/") and name != "solution/solve.sh"]
    if "solution/solve.sh" not in texts:
        return ()
    script = texts["solution/solve.sh"]
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables)
    texts = {**texts, "solution/solve.sh": script._replace(text=exports + script.text)}
    return tuple(
        _placed(name, place(f"/{name}", moved) or "", texts[name], moved)
        for name in ("solution/solve.sh", *names)
        if texts[name].text or name == "solution/solve.sh"
    )


def _recipe(
    texts: Mapping[str, FolderText], image: Image, settings: HarborSettings, moved: Mapping[str, str], *, foreign: bool
) -> tuple[HarborRecipe, list[str]]:
    """Returns what a folder's image, test and solution install and run, and what of it cannot be reproduced."""
    lost = list(image.lost)
    pip, apt = list(image.pip), [name for name in image.apt if name not in ("python3", "python3-pip", "python3-venv")]
    ours = ("tests/", "solution/")
    scripts = [one.text for name, one in texts.items() if name.endswith(".sh") and name.startswith(ours)]
    for script in scripts:
        found = dockerfile.installs(script)
        pip, apt, lost = [*pip, *found.pip], [*apt, *found.apt], [*lost, *found.lost]
    for one in [one for one in pip if one.startswith("-r ")]:
        pip.remove(one)
        listed = _listed(one.removeprefix("-r "), texts, image)
        if listed is None:
            lost.append(f"pip install {one}")
        else:
            pip += listed
    names = {re.split(r"[^A-Za-z0-9_.-]", one, maxsplit=1)[0].lower() for one in pip}
    if foreign and "pytest" not in names and any("pytest" in text for text in (*scripts, _test_of(texts))):
        pip.append("pytest")
    apt = [name for name in apt if name not in ("curl", "wget", "ca-certificates", "tar", "coreutils", "bash")]
    steps = tuple(move(step, moved) for step in image.steps)
    health = move(settings.healthcheck, moved)
    return HarborRecipe(tuple(dict.fromkeys(pip)), tuple(dict.fromkeys(apt)), steps, health), list(dict.fromkeys(lost))


def _listed(path: str, texts: Mapping[str, FolderText], image: Image) -> list[str] | None:
    """Returns the requirements in a list that the image copies; None if it has no such file."""
    names = [name.removeprefix("environment/") for name in texts if name.startswith("environment/")]
    for copied in image.copies:
        for name, target in dockerfile.matches(copied, names).items():
            if target == path:
                lines = (line.partition("#")[0].strip() for line in texts[f"environment/{name}"].text.splitlines())
                return [line for line in lines if line and not line.startswith("-")]
    return None


def _test_of(texts: Mapping[str, FolderText]) -> str:
    """Returns the test script of a folder: its own, or pytest's if it has only a file for pytest."""
    if "tests/test.sh" in texts:
        return texts["tests/test.sh"].text
    if "tests/test_outputs.py" in texts:
        return PYTEST
    raise HarborError("it has no tests/test.sh")


def _tests(texts: Mapping[str, FolderText], moved: Mapping[str, str]) -> list[PlacedFile]:
    """Returns the files of the Harbor folder's test, at their places in the sandbox, without empty .gitkeep files."""
    script = FolderText(_test_of(texts), "755")
    return [
        _placed(name, f"{TESTS}/{name.removeprefix('tests/')}", one, moved)
        for name, one in ({"tests/test.sh": script} | dict(texts)).items()
        if name.startswith("tests/") and (one.text or not name.endswith("/.gitkeep"))
    ]


def _placed(name: str, path: str, one: FolderText, moved: Mapping[str, str]) -> PlacedFile:
    """Returns a file of a Harbor folder at its path in a sandbox, with folders in its text renamed. Raises HarborError
    for an unusable name or too long a text."""
    if not PATH.match(path):
        raise HarborError(
            f"{name[:80]!a} has an unsupported name, or is nested too deep",
            hint="use letters, digits and _ . -, in at most 11 folders",
        )
    text = move(one.text, moved)
    if len(text) > FILE_CHARS:
        raise HarborError(f"{name[:80]!a} has more than {FILE_CHARS} characters after its folders are renamed")
    return PlacedFile(path=path, text=text, mode=one.mode)


def _own(text: str) -> FilesSpec:
    try:
        spec = read_model(FilesSpec, text, Bounds(8 << 20))
        if spec.foreign is not None:
            raise HarborError(
                f"its {OWN_CHECK} has a foreign test, which gives no verdict", hint="remove `foreign` from it"
            )
        check(spec)
    except (NotJsonError, InvalidInputError) as error:
        raise HarborError(f"its {OWN_CHECK} is not a valid spec: {error}") from error
    except SpecError as error:
        raise HarborError(f"its {OWN_CHECK} is unusable: {error}", hint=error.hint) from error
    return spec


def _foreign(
    settings: HarborSettings,
    texts: Mapping[str, FolderText],
    instruction: str,
    world: Mapping[str, Any],
    moved: Mapping[str, str],
) -> FilesSpec:
    tests = _tests(texts, moved)
    files = [PlacedFile.model_validate(one) for one in world["files"]]
    declared = _declared(settings.artifacts, [instruction, *(one.text for one in tests)], files, moved)
    placed = [*tests, PlacedFile(path=f"{LOGS}/verifier/about.txt", text="the score lies beside this file\n")]
    variables = dict(world["variables"]) | {name: move(value, moved) for name, value in settings.test_variables}
    try:
        test = ForeignTest(
            files=tuple(placed),
            world=tuple(files),
            folders=tuple(world["folders"]),
            gathers=True,
            variables=tuple(variables.items()),
            memory_mib=world.get("memory_mib", 512),
            command=("bash", f"/work/{TESTS}/test.sh"),
            rewards=(f"{LOGS}/verifier/reward.json", f"{LOGS}/verifier/reward.txt"),
            seconds=settings.seconds,
        )
        spec = FilesSpec(declared=tuple(declared), foreign=test)
        check(spec)
    except ValidationError as error:
        raise HarborError(f"its test does not fit into a sandbox: {first_fault(error)}") from error
    except SpecError as error:
        raise HarborError(f"its test does not fit into a sandbox: {error}", hint="name files as artifacts") from error
    return spec


def _declared(
    artifacts: Sequence[str], texts: list[str], files: Iterable[PlacedFile], moved: Mapping[str, str]
) -> list[str]:
    """Returns the paths of the files to judge. These are listed artifacts, else files that the texts name."""
    named = [move(one, moved) for one in artifacts]
    if not named:
        named = re.findall(r"/work/[A-Za-z0-9_.][A-Za-z0-9_./-]*[A-Za-z0-9_]", "\n".join(texts))
        named += [f"/work/{file.path}" for file in files]
    found = dict.fromkeys(posixpath.normpath(one.removeprefix("/work/")) for one in named if one.startswith("/work/"))
    taken = {file.path for file in files}
    above = {"/".join(path.split("/")[:depth]) for path in (*found, *taken) for depth in range(1, path.count("/") + 1)}
    above |= {new.removeprefix("/work/") for new in moved.values()} | {TESTS, LOGS}
    kept = [
        path
        for path in found
        if DECLARED.match(path)
        and path.partition("/")[0] not in (TESTS, LOGS)
        and (artifacts or not (path in above or any(path.startswith(f"{file}/") for file in taken)))
    ]
    return kept[:MOST_FILES] or ["result.txt"]
