"""Writes a terminal task as a Harbor task folder.

Invariants: the folder is new, needs no network to build or judge, and when read back is judged by the same spec, its
file `tests/assay.json`.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

from curriculum.contract.taskset import TaskDraft
from curriculum.environments.terminal.environment import TERMINAL
from curriculum.environments.terminal.harbor.dockerfile import HarborError
from curriculum.environments.terminal.harbor.folder import OWN_CHECK
from curriculum.environments.terminal.repairs import commands_of
from verifiers.files.spec import FilesSpec, PlacedFile, read

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
