"""Reads a Harbor task folder into a task, or gives the reason why it cannot be one.

Invariants: nothing of the folder runs here, links are not followed, and only plain text of bounded size is accepted. A
test in the folder runs beside the work it judges: its score is a foreign reward, not a verdict. A folder with
`tests/assay.json`, a spec of the kind `files`, is judged by that spec. The image's working folder, /tests and /logs are
below /work here, and all texts are rewritten accordingly.

Writes a terminal task as a Harbor task folder.

Invariants: the folder is new, needs no network to build or judge, and when read back is judged by the same spec, its
file `tests/assay.json`.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
import stat
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from common.bounded_models import InvalidInputError, first_fault, read_model
from common.strict_json import Bounds, NotJsonError
from curriculum.contract.task import asked
from curriculum.contract.taskset import TaskDraft
from curriculum.environments.terminal.environment import TERMINAL, TERMINAL_OPENING, TerminalSetup
from curriculum.environments.terminal.harbor import dockerfile
from curriculum.environments.terminal.harbor.dockerfile import HarborError, Image
from curriculum.environments.terminal.repairs import commands_of
from verifiers.contract.errors import SpecError
from verifiers.contract.kinds import AnswerForm
from verifiers.files.spec import FILE_CHARS, MOST_FILES, FilesSpec, ForeignTest, PlacedFile, read
from verifiers.files.verifier import check

OWN_CHECK = "tests/assay.json"
MOST, MOST_SECONDS = 300, 600.0
PARTS = "name a Harbor task folder: task.toml, instruction.md, environment/Dockerfile, tests/test.sh"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*){0,5}\Z")
TESTS, LOGS = "harbor-tests", "harbor-logs"


class HarborTask(NamedTuple):
    name: str
    draft: TaskDraft
    """Draft without an answer: the solution has not been run."""
    solution: str
    """Commands of the reference solution, for /work; empty if the folder has none."""
    foreign: bool
    """True if only the folder's own test judges it."""
    notes: tuple[str, ...]
    """Differences from the folder's description."""


class FolderText(NamedTuple):
    text: str
    mode: str


def read_folder(folder: Path, *, own_check: bool = True) -> HarborTask:
    """Reads a Harbor task folder into a terminal task. Without `own_check` the folder's test alone judges, even if it
    has a built-in spec. Raises HarborError with the reason if the folder cannot be used."""
    texts = _texts(folder)
    settings = _settings(texts)
    image = dockerfile.read(_needed(texts, "environment/Dockerfile").text)
    moved = {image.workdir: "/work", "/tests": f"/work/{TESTS}", "/logs": f"/work/{LOGS}"}
    if image.workdir == "/work":
        del moved["/work"]
    instruction = _moved(_needed(texts, "instruction.md").text, moved)
    files = _environment(texts, image, moved)
    notes = [f"a shell with small programs and Python replaces the image {image.base}"]
    if image.workdir != "/work":
        notes.append(f"{image.workdir} is /work here")
    if empty := [name for name in image.folders if not _holds_a_file(name, image, files)]:
        notes.append(f"folders that its Dockerfile makes do not exist at the start: {', '.join(empty)[:200]}")
    foreign = not (own_check and OWN_CHECK in texts)
    spec = _foreign(settings, texts, instruction, files, moved) if foreign else _own(texts[OWN_CHECK].text)
    if foreign:
        notes.append("only its own test judges it: the score is a foreign reward, not a verdict")
    world = {"files": [file.model_dump(mode="json") for file in files], "declared": list(spec.declared)}
    try:
        TerminalSetup.model_validate(world)
    except ValidationError as error:
        raise HarborError(f"its files do not fit into a terminal: {first_fault(error)}") from error
    name = str(settings.get("task", {}).get("name") or folder.resolve().name)[:100]
    solution = texts.get("solution/solve.sh")
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
    return HarborTask(name, draft, _moved(solution.text, moved) if solution else "", foreign, tuple(notes))


def _holds_a_file(folder: str, image: Image, files: Sequence[PlacedFile]) -> bool:
    below = posixpath.relpath(posixpath.join(image.workdir, folder), image.workdir)
    return below == "." or any(one.path.startswith(f"{below}/") for one in files)


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


def _settings(texts: Mapping[str, FolderText]) -> dict[str, Any]:
    """Parses a Harbor folder's task.toml (schema 1.0 to 1.4). Raises HarborError for unavailable features."""
    try:
        settings = tomllib.loads(_needed(texts, "task.toml").text)
    except (ValueError, RecursionError) as error:
        raise HarborError(f"its task.toml cannot be read: {str(error)[:100]}") from error
    environment, verifier = _table(settings, "environment"), _table(settings, "verifier")
    _table(settings, "task")
    if environment.get("gpus"):
        raise HarborError("it needs a GPU, which sandboxes do not have")
    if environment.get("allow_internet") or environment.get("network_mode") not in (None, "no-network"):
        raise HarborError("it needs a network", hint='set network_mode = "no-network" if it works without')
    if environment.get("docker_image"):
        raise HarborError("it needs a prebuilt image", hint="give an environment/Dockerfile")
    if any("compose" in name and name.startswith("environment/") for name in texts):
        raise HarborError("it needs several containers (docker compose)")
    if settings.get("steps") or any(name.startswith("steps/") for name in texts):
        raise HarborError("it has several steps", hint="make a folder for each step: a task is one conversation")
    if environment.get("mcp_servers"):
        raise HarborError("it needs MCP servers")
    if "tests/Dockerfile" in texts or verifier.get("environment"):
        raise HarborError("its test needs an image of its own")
    if verifier.get("env") or environment.get("env"):
        raise HarborError("it needs variables from the host's environment")
    return settings


def _table(settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = settings.get(name, {})
    if not isinstance(found, dict):
        raise HarborError(f"[{name}] of its task.toml is not a table")
    return found


def _needed(texts: Mapping[str, FolderText], name: str) -> FolderText:
    if name not in texts:
        raise HarborError(f"it has no {name}")
    return texts[name]


def _environment(texts: Mapping[str, FolderText], image: Image, moved: Mapping[str, str]) -> list[PlacedFile]:
    """Returns the files that the Harbor folder's image puts into /work at first."""
    files: dict[str, PlacedFile] = {}
    for copied in image.copies:
        source = "environment/" if copied.source == "." else f"environment/{copied.source.rstrip('/')}"
        target = copied.target
        matches = {
            name: one
            for name, one in texts.items()
            if name == source or name.startswith(source if source.endswith("/") else f"{source}/")
        }
        if not matches:
            raise HarborError(f"its Dockerfile copies {copied.source[:60]!a}, which does not exist")
        for name, one in matches.items():
            if name == "environment/Dockerfile":
                continue
            inner = name.removeprefix(source).lstrip("/") or (Path(name).name if target.endswith("/") else "")
            path = f"{target.rstrip('/')}/{inner}".rstrip("/")
            below = path.removeprefix(f"{image.workdir}/")
            if below == path or not NAME.match(below):
                raise HarborError(
                    f"its Dockerfile puts {path[:60]!a} outside its working folder, or under an unsupported name"
                )
            files[below] = _placed(name, below, one, moved)
    return list(files.values())


def _tests(texts: Mapping[str, FolderText], moved: Mapping[str, str]) -> list[PlacedFile]:
    """Returns the files of the Harbor folder's test, at their places in the sandbox, without empty .gitkeep files."""
    return [
        _placed(name, f"{TESTS}/{name.removeprefix('tests/')}", one, moved)
        for name, one in texts.items()
        if name.startswith("tests/") and (one.text or not name.endswith("/.gitkeep"))
    ]


def _placed(name: str, path: str, one: FolderText, moved: Mapping[str, str]) -> PlacedFile:
    """Returns a file of a Harbor folder at its path in a sandbox, with folders in its text renamed. Raises HarborError
    for an unusable name or too long a text."""
    if not NAME.match(path):
        raise HarborError(
            f"{name[:80]!a} has an unsupported name, or is nested too deep",
            hint="use letters, digits and _ . - (no . first), in at most 5 folders",
        )
    text = _moved(one.text, moved)
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
    settings: Mapping[str, Any],
    texts: Mapping[str, FolderText],
    instruction: str,
    files: list[PlacedFile],
    moved: Mapping[str, str],
) -> FilesSpec:
    script = _needed(texts, "tests/test.sh").text
    tests = _tests(texts, moved)
    for one in tests:
        if one.path.endswith(".sh"):
            dockerfile.refuse_network(one.text, f"its {one.path.removeprefix(f'{TESTS}/')}")
    declared = _declared(settings, [instruction, *(one.text for one in tests)], files, moved)
    if not declared:
        raise HarborError("neither its artifacts, its instruction nor its tests name a file", hint="list artifacts")
    seconds = settings.get("verifier", {}).get("timeout_sec", 60.0)
    usable = isinstance(seconds, int | float) and seconds > 0 and bool(script.strip())
    placed = [*tests, PlacedFile(path=f"{LOGS}/verifier/about.txt", text="the score lies beside this file\n")]
    kept = [file for file in files if file.path not in declared]
    try:
        test = ForeignTest(
            files=(*kept, *placed),
            command=("bash", f"/work/{TESTS}/test.sh"),
            rewards=(f"{LOGS}/verifier/reward.json", f"{LOGS}/verifier/reward.txt"),
            seconds=float(min(seconds, MOST_SECONDS)) if usable else 60.0,
        )
        spec = FilesSpec(declared=tuple(declared), foreign=test)
        check(spec)
    except ValidationError as error:
        raise HarborError(f"its test does not fit into a sandbox: {first_fault(error)}") from error
    except SpecError as error:
        raise HarborError(f"its test does not fit into a sandbox: {error}", hint="name files as artifacts") from error
    return spec


def _declared(
    settings: Mapping[str, Any], texts: list[str], files: list[PlacedFile], moved: Mapping[str, str]
) -> list[str]:
    """Returns the paths of the files to judge. These are listed artifacts, else files that the texts name."""
    listed = settings.get("artifacts", [])
    if isinstance(listed, list):
        listed = [one.get("source") if isinstance(one, dict) else one for one in listed]
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise HarborError(
            "the artifacts of its task.toml are not a list of paths", hint='write artifacts = ["/app/a.txt"]'
        )
    named = [_moved(one, moved) for one in listed]
    if not named:
        named = re.findall(r"/work/[A-Za-z0-9_][A-Za-z0-9_./-]*[A-Za-z0-9_]", "\n".join(texts))
        named += [f"/work/{file.path}" for file in files]
    found = dict.fromkeys(one.removeprefix("/work/") for one in named if one.startswith("/work/"))
    folders = {path.rpartition("/")[0] for path in found} | {TESTS, LOGS}
    kept = [
        path
        for path in found
        if NAME.match(path) and path not in folders and path.partition("/")[0] not in (TESTS, LOGS)
    ]
    return kept[:MOST_FILES]


def _moved(text: str, moved: Mapping[str, str]) -> str:
    """Replaces folder paths in a text by those that they are moved to, all simultaneously."""
    names = "|".join(re.escape(name) for name in sorted(moved, key=len, reverse=True))
    return re.sub(rf"(?<![\w./-])({names})(?![\w-])(?!\.\w)", lambda hit: moved[hit.group(1)], text)


DOCKERFILE = "FROM python:3.11-slim-bookworm\nWORKDIR /work\nCOPY files/ /work/\n"
TEST = "#!/bin/bash\npython3 /tests/judge.py /tests /work /logs/verifier/reward.txt\n"


def write(draft: TaskDraft, name: str, folder: Path) -> None:
    """Writes a terminal task as a new Harbor folder. Raises HarborError for other tasks, or if the folder exists."""
    spec = draft.spec
    if draft.environment != TERMINAL.name or not isinstance(spec, FilesSpec) or spec.foreign is not None:
        raise HarborError(
            "only terminal tasks with a built-in check can be written as a Harbor folder",
            hint="use the taskset terminal_repairs",
        )
    solved = read(spec, draft.answer)
    if isinstance(solved, str):
        raise HarborError(f"the task has no usable solution: {solved}")
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise HarborError(f"{folder} exists already", hint="name a new folder") from error
    settings = (
        f'schema_version = "1.1"\nartifacts = {json.dumps([f"/work/{path}" for path in spec.declared])}\n\n'
        f"[task]\nname = {json.dumps(f'assay/{name}')}\n"
        f'description = "A repair in a terminal"\n\n'
        '[metadata]\ncategory = "terminal"\n\n[verifier]\ntimeout_sec = 120.0\n\n[agent]\ntimeout_sec = 600.0\n\n'
        '[environment]\ncpus = 1\nmemory_mb = 512\nstorage_mb = 512\nnetwork_mode = "no-network"\n'
    )
    answer = [PlacedFile(path=path, text=one.text, mode=one.mode) for path, one in solved.items()]
    judge = resources.files(__package__).joinpath("judge.py").read_text(encoding="utf-8")
    checked = json.dumps(spec.model_dump(mode="json"), indent=1)
    texts = [
        PlacedFile(path="task.toml", text=settings),
        PlacedFile(path="instruction.md", text="\n".join(message.text for message in draft.messages) + "\n"),
        PlacedFile(path="environment/Dockerfile", text=DOCKERFILE),
        *(
            file.model_copy(update={"path": f"environment/files/{file.path}"})
            for file in (PlacedFile.model_validate(one) for one in draft.world["files"])
        ),
        PlacedFile(path="tests/test.sh", text=TEST, mode="755"),
        PlacedFile(path="tests/judge.py", text=judge),
        PlacedFile(path=OWN_CHECK, text=checked),
        PlacedFile(path="solution/solve.sh", text=f"#!/bin/bash\ncd /work\n{commands_of(answer)}", mode="755"),
    ]
    for file in texts:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")
        path.chmod(int(file.mode, 8))
