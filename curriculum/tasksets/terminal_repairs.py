"""Repairs and set-ups in a terminal: what is judged are declared files, by what they hold and do in a fresh sandbox.

Six families (`curriculum.environments.terminal.repairs`); higher levels have more to mend.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from random import Random

from curriculum.contract.taskset import TaskDraft
from curriculum.contract.topics import Item, TopicTaskset
from curriculum.environments.terminal import repairs
from curriculum.environments.terminal.environment import TERMINAL, TERMINAL_OPENING
from curriculum.environments.terminal.repairs import Repair, submission_of
from verifiers.contract.kinds import AnswerForm
from verifiers.files.spec import FileCondition, FilesSpec
from verifiers.registry.spec import Spec

TURNS = 20
FAMILIES: dict[str, Callable[[int, Random], Repair]] = {
    "shell scripts": repairs.broken_script,
    "build steps": repairs.wrong_order,
    "log reports": repairs.log_report,
    "table clean-up": repairs.table_cleanup,
    "wrong settings": repairs.wrong_settings,
    "file modes": repairs.modes,
}


def _item(make: Callable[[int, Random], Repair]) -> Callable[[int, Random], Item]:
    def item(level: int, rng: Random) -> Item:
        return item_of(make(level, rng))

    return item


def item_of(repair: Repair) -> Item:
    """Makes the question of a terminal repair, with its files and check."""
    names = ", ".join(repair.spec.declared)
    files = [file.model_dump(mode="json") for file in repair.files]
    world = {"files": files, "declared": list(repair.spec.declared)}
    listed = "\n".join(f"{file.mode} {len(file.text.encode()):6} {file.path}" for file in repair.files)
    asked = json.dumps([repair.instruction, files, repair.spec.model_dump(mode="json")], sort_keys=True)
    digest = hashlib.sha256(asked.encode()).hexdigest()
    return Item(
        text=(
            f"{TERMINAL_OPENING}\n\n{repair.instruction}\n\n"
            f"What is judged: {names}, as {'they are' if ',' in names else 'it is'} when you have finished. "
            "Then say that you have.\n\n"
            f"What is there (mode, bytes, name), folder {digest[:8]}:\n{listed}"
        ),
        key=digest[:20],
        spec=repair.spec,
        answer=submission_of(repair.solved),
        world=world,
    )


def _another_text(draft: TaskDraft, number: int) -> Spec:
    """Returns a spec that requires an undisclosed number in one of the files, so no honest answer passes."""
    spec = draft.spec
    assert isinstance(spec, FilesSpec)
    never = FileCondition(path=spec.declared[0], equals=f"{number} is not asked for")
    return FilesSpec(declared=spec.declared, files=(never,))


TERMINAL_REPAIRS = TopicTaskset(
    name="terminal_repairs",
    version=3,
    makers={topic: _item(make) for topic, make in FAMILIES.items()},
    null_answers=("{}", "done", '{"report.txt": {"text": "", "mode": "644"}}'),
    form=AnswerForm.WORLD,
    tools=tuple(tool.name for tool in TERMINAL.tools),
    environment=TERMINAL.name,
    turns=TURNS,
    contradicted=_another_text,
)
