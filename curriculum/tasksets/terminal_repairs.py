"""Repairs and longer jobs in a terminal, judged by declared files: their content and behaviour in a fresh sandbox.

Three topics. Levels 0 to 2 have small repairs (`repairs`). Levels 3 to 5 have jobs whose reference takes 13 to 34
commands: pipelines with defects that hide each other (`pipelines`), scripts to write again from their reports
(`reconstructions`), and trees to recover from journals and to migrate (`recoveries`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import partial
from random import Random

from curriculum.contract.taskset import TaskDraft
from curriculum.contract.topics import Item, TopicTaskset
from curriculum.environments.terminal import repairs
from curriculum.environments.terminal.environment import TERMINAL, TERMINAL_OPENING
from curriculum.environments.terminal.pipelines import mended_pipeline
from curriculum.environments.terminal.reconstructions import lost_script
from curriculum.environments.terminal.recoveries import damaged_tree
from curriculum.environments.terminal.repairs import Repair, submission_of
from verifiers.contract.kinds import AnswerForm
from verifiers.files.spec import FileCondition, FilesSpec
from verifiers.registry.spec import Spec

TURNS = 60
SMALL_LEVELS = (0, 2, 4)
"""Levels of the small repairs that the first levels take."""
JOB_LEVELS = 3
Maker = Callable[[int, Random], Repair]
TOPICS: dict[str, tuple[tuple[Maker, ...], Maker]] = {
    "scripts in a terminal": ((repairs.broken_script, repairs.wrong_order), mended_pipeline),
    "reports in a terminal": ((repairs.log_report, repairs.table_cleanup), lost_script),
    "settings in a terminal": ((repairs.wrong_settings, repairs.modes), damaged_tree),
}
"""Small repairs and the longer job of each topic."""


def repair_of(topic: str, level: int, rng: Random) -> Repair:
    """Makes the repair or job of a topic at a level."""
    small, job = TOPICS[topic]
    if level < len(SMALL_LEVELS):
        return rng.choice(small)(SMALL_LEVELS[level], rng)
    return job(level - len(SMALL_LEVELS), rng)


def _item(topic: str, level: int, rng: Random) -> Item:
    return item_of(repair_of(topic, level, rng))


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
    version=4,
    makers={topic: partial(_item, topic) for topic in TOPICS},
    level_count=len(SMALL_LEVELS) + JOB_LEVELS,
    null_answers=("{}", "done", '{"report.txt": {"text": "", "mode": "644"}}'),
    form=AnswerForm.WORLD,
    tools=tuple(tool.name for tool in TERMINAL.tools),
    environment=TERMINAL.name,
    turns=TURNS,
    contradicted=_another_text,
)
