"""Reads recipes of staged trainings, scales them to a machine, and shows the plan.

  about = "what it is"            # optional
  scale = true                    # optional: fit budgets and batches to the machine that plans
  [training] [agent] [warm_start] [evaluation]    # common to all stages, by the keys of [recipe]
  [[stages]]
  name = "8K"
  kind = "rl"                     # sft, rl or distil
  [stages.training]               # this stage only

Invariants: nothing is changed and no model is loaded; an unknown key is an error that names the file, the stage and the
nearest key, and so is a value of another type; missing keys take the configured values. Each stage gets a complete
recipe.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import Field, ValidationError

from appliance import planning
from appliance.agent.budget import AgentBudget
from appliance.learning.recipes.recipe import EvaluationRecipe, Recipe, TrainingRecipe, WarmStartRecipe
from appliance.learning.recipes.stages import MOST_TRACES, OWN_KEYS, Stage, StageKind, TeacherRecipe, refusal
from appliance.planning import ONE, Hardware, Layout, Shape
from appliance.planning.engine_share import shared_out, way_of
from appliance.settings.config_layers import LONGEST, ConfigError, Layer, file_layer, merged, refused
from appliance.system.durable_file import expanded
from appliance.text.printable import printable
from common.toml_files import beginning, read_toml
from runtime.model import FrozenModel

SHIPPED = "recipes"
SECTIONS = ("tasksets", "warm_start", "training", "agent", "evaluation")
LEAST_CONTEXT = 128
"""Minimum conversation tokens for scaling."""
Teachers = Mapping[str, Shape]
"""Shapes of scoring models by a stage's name for them; unknown ones are not counted."""
NOBODY: Teachers = MappingProxyType({})


class RecipeFile(FrozenModel):
    """Keys of a recipe file."""

    about: str = ""
    scale: bool = False
    tasksets: tuple[str, ...] = ()
    warm_start: WarmStartRecipe = WarmStartRecipe()
    training: TrainingRecipe = TrainingRecipe()
    agent: AgentBudget = AgentBudget()
    evaluation: EvaluationRecipe = EvaluationRecipe()
    stages: tuple[dict[str, Any], ...] = Field(default=())


class StageFile(FrozenModel):
    """Keys of one stage in a recipe file."""

    name: str = ""
    kind: StageKind = "rl"
    tasks: str = ""
    optimizer: str = ""
    advance_at: float | None = None
    data: str = ""
    file: str = ""
    scored_by: str = ""
    teacher: TeacherRecipe = TeacherRecipe()
    warm_start: WarmStartRecipe = WarmStartRecipe()
    training: TrainingRecipe = TrainingRecipe()
    agent: AgentBudget = AgentBudget()


@dataclass(frozen=True)
class StagedRecipe:
    """Parsed training recipe: complete stages and their sources."""

    name: str
    about: str
    stages: tuple[Stage, ...]
    scale: bool
    files: Mapping[str, Path]
    """Conversation files of stages, by SHA-256."""
    notes: tuple[str, ...] = ()
    """Descriptions of what was scaled."""
    written: tuple[Stage, ...] = ()
    """Stages before scaling; empty if unscaled."""

    @property
    def digest(self) -> str:
        """Digest of the training recipe as written, before scaling: what fits depends on free memory, which changes
        during the run."""
        lines = "\n".join(stage.digest() for stage in self.written or self.stages)
        return hashlib.sha256(lines.encode()).hexdigest()

    def only(self, number: int) -> StagedRecipe:
        """Returns the recipe of one stage only. Raises ConfigError for an unknown stage."""
        if not 1 <= number <= len(self.stages):
            raise ConfigError(
                f"{self.name}: unknown stage {number}",
                hint="use one of " + ", ".join(f"{place} ({stage.name})" for place, stage in enumerate(self.stages, 1)),
            )
        alone = {"optimizer": "reset"}
        stages, written = (
            tuple(one.model_copy(update=alone) for one in of[number - 1 : number]) for of in (self.stages, self.written)
        )
        return StagedRecipe(self.name, self.about, stages, self.scale, self.files, self.notes, written)


def shipped() -> list[str]:
    """Lists the names of the built-in training recipes."""
    folder = resources.files("appliance") / SHIPPED
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def read_recipe(name: str, configured: Recipe) -> StagedRecipe:
    """Reads a training recipe from a file, or a built-in one by name. Raises ConfigError."""
    path = expanded(name)
    if name in shipped() and not path.is_file():
        text = (resources.files("appliance") / SHIPPED / f"{name}.toml").read_text()
        return _recipe(name, Path(), Layer(f"the recipe {name}", read_toml(text)), configured)
    if not path.exists():
        near = difflib.get_close_matches(name, shipped(), n=1)
        raise ConfigError(
            f"unknown recipe {name}",
            hint=f"did you mean {near[0]}?" if near else f"name a file, or one of {', '.join(shipped())}",
        )
    return _recipe(path.stem, path.parent, file_layer(path), configured)


def _recipe(name: str, folder: Path, layer: Layer, configured: Recipe) -> StagedRecipe:
    given = layer.values
    common, _ = merged([layer], RecipeFile)
    listed = common.pop("stages", ())
    if not isinstance(listed, list | tuple) or not all(isinstance(one, Mapping) for one in listed):
        raise ConfigError(f"{layer.name}: stages is not a list of tables", hint="write [[stages]] above each stage")
    if not listed:
        raise ConfigError(f"{layer.name} has no stages", hint="write [[stages]] with a name and a kind")
    if not isinstance(common.get("scale", False), bool):
        raise ConfigError(f"{layer.name}: scale must be true or false ({common['scale']!r})", hint="correct it there")
    # Only explicit settings: derived values, such as an objective's clip, must be derived again.
    base = configured.model_dump(mode="json", exclude_unset=True)
    base = _over(base, {key: value for key, value in given.items() if key in SECTIONS})
    files: dict[str, Path] = {}
    stages = tuple(
        _stage(Layer(f"{layer.name}, stage {number}", table), base, folder, files)
        for number, table in enumerate(listed, 1)
    )
    if why := refusal(stages):
        raise ConfigError(f"{layer.name}: {why}", hint="see docs/training.md for the rules of stages")
    return StagedRecipe(name, str(common.get("about", "")), stages, bool(common.get("scale", False)), files)


def _stage(layer: Layer, base: Mapping[str, Any], folder: Path, files: dict[str, Path]) -> Stage:
    values, origins = merged([layer], StageFile)
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in OWN_KEYS:
        raise ConfigError(
            f"{layer.name}: invalid kind {printable(repr(kind), limit=LONGEST)}",
            hint=f"write one of {', '.join(OWN_KEYS)}",
        )
    foreign = sorted((values.keys() & frozenset().union(*OWN_KEYS.values())) - OWN_KEYS[kind])
    if foreign:
        raise ConfigError(f"{layer.name}: unknown key {foreign[0]} in a stage of kind {kind}", hint="remove it there")
    if "file" in values:
        values["file"] = _kept(layer, folder, values["file"], files)
    sections: dict[str, Any] = {key: values.pop(key) for key in ("warm_start", "training", "agent") if key in values}
    try:
        recipe = Recipe.model_validate(_over(base, sections))
    except ValidationError as error:
        raise _refused(error, layer, origins) from error
    try:
        return Stage.model_validate({**values, "recipe": recipe})
    except ValidationError as error:
        raise _refused(error, layer, origins) from error


def _refused(error: ValidationError, layer: Layer, origins: Mapping[str, str]) -> ConfigError:
    """Converts a validation error of a stage's values, including inherited ones, to a ConfigError that names their
    place."""
    key = ".".join(str(part) for part in error.errors()[0]["loc"])
    return refused(error, {key: layer.name, **origins})


def _kept(layer: Layer, folder: Path, named: Any, files: dict[str, Path]) -> str:
    """Returns the SHA-256 of the file of a stage's conversations, and adds the file to `files`; paths are relative to
    the recipe's folder."""
    if not isinstance(named, str) or not named:
        raise ConfigError(f"{layer.name}: file = {named!r} is not a file name", hint="name a file of JSON lines")
    path = (folder / expanded(named)).absolute()
    try:
        content = beginning(path, MOST_TRACES)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"{layer.name}: {printable(str(path), limit=LONGEST)} cannot be read: {reason}", hint="correct file there"
        ) from error
    if len(content) > MOST_TRACES:
        raise ConfigError(
            f"{layer.name}: {path} is larger than {MOST_TRACES >> 20} MiB", hint="split it over several stages of sft"
        )
    digest = hashlib.sha256(content).hexdigest()
    files[digest] = path
    return digest


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merges two nested mappings; the second one's values win."""
    made = dict(below)
    for key, value in above.items():
        known = made.get(key)
        made[key] = _over(known, value) if isinstance(known, Mapping) and isinstance(value, Mapping) else value
    return made


def scaled(
    recipe: StagedRecipe, shape: Shape, machine: Hardware, layout: Layout = ONE, teachers: Teachers = NOBODY
) -> StagedRecipe:
    """Returns the recipe with budgets that fit into memory: all tokens scaled by one factor, which keeps the stages'
    proportions, then the most concurrent rollouts and the largest passes that fit. Unchanged unless the file requests
    scaling. Raises ConfigError if nothing fits."""
    if not recipe.scale:
        return recipe
    most = max(stage.recipe.agent.max_tokens for stage in recipe.stages)

    def fit(stages: Sequence[Stage]) -> bool:
        return not too_large(stages, shape, machine, layout, teachers)

    def least(context: int, rows: int) -> list[Stage]:
        return [_least(one, context / most, rows) for one in recipe.stages]

    lengths = _lengths(most, shape)
    context = next((tokens for tokens in lengths if fit(least(tokens, 1))), 0)
    if not context:
        raise ConfigError(
            f"{recipe.name}: not even conversations of {lengths[-1]} tokens fit into this machine",
            hint='run `assay plan` for the reason; use a smaller model, or method = "lora" in [training]',
        )
    factor = context / most
    asked = max(one.recipe.agent.concurrent for one in recipe.stages)
    rows = planning.largest(lambda count: fit(least(context, count)), 1, asked)
    stages = least(context, rows)
    for place, one in enumerate(recipe.stages):  # sequentially: the other stages' passes affect vLLM's share
        stages = _widened(stages, place, int(one.recipe.training.micro_batch_tokens * factor), fit)
    notes = []
    if context < most:
        notes.append(f"tokens scaled by {factor:.3g}: the longest conversation that fits is {context} of {most}")
    if rows < asked:
        notes.append(f"{rows} concurrent rollouts instead of {asked}")
    return StagedRecipe(
        recipe.name, recipe.about, tuple(stages), recipe.scale, recipe.files, tuple(notes), recipe.stages
    )


def _lengths(most: int, shape: Shape) -> list[int]:
    """Returns conversation lengths to try, longest first: the requested one, its halves and three quarters."""
    bound = min(most, shape.positions or most)
    found = {bound, *(most >> power for power in range(16)), *(3 * most >> (power + 2) for power in range(16))}
    return sorted((tokens for tokens in found if min(LEAST_CONTEXT, bound) <= tokens <= bound), reverse=True)


def _least(stage: Stage, factor: float, rows: int) -> Stage:
    """Returns the stage with tokens scaled by `factor`, at most `rows` concurrent rollouts, and minimal passes."""
    recipe = stage.recipe
    tokens = max(16, int(recipe.agent.max_tokens * factor))
    agent = recipe.agent.model_copy(
        update={
            "max_tokens": tokens,
            "concurrent": min(recipe.agent.concurrent, rows),
            "max_result_chars": max(8, int(recipe.agent.max_result_chars * factor)),
        }
    )
    return _with_pass(stage.model_copy(update={"recipe": recipe.model_copy(update={"agent": agent})}), tokens)


def _widened(stages: list[Stage], place: int, wanted: int, fit: Callable[[Sequence[Stage]], bool]) -> list[Stage]:
    """Returns the stages with one stage's forward passes at `wanted` tokens, or fewer that fit."""

    def passing(tokens: int) -> list[Stage]:
        return [*stages[:place], _with_pass(stages[place], tokens), *stages[place + 1 :]]

    return passing(planning.largest(lambda tokens: fit(passing(tokens)), stages[place].recipe.agent.max_tokens, wanted))


def _with_pass(stage: Stage, tokens: int) -> Stage:
    recipe = stage.recipe
    training = planning.with_pass(recipe.training, tokens)
    return stage.model_copy(update={"recipe": recipe.model_copy(update={"training": training})})


def too_large(
    stages: Sequence[Stage], shape: Shape, machine: Hardware, layout: Layout = ONE, teachers: Teachers = NOBODY
) -> list[str]:
    """Lists the names of the stages that do not fit into memory. Engines have one GPU share for all stages, as in a
    worker."""
    plans = _plans(stages, shape, machine, layout, teachers)
    return [stage.name for stage, one in zip(stages, plans, strict=True) if not one.fits]


def rows_of(
    stages: Sequence[Stage], shape: Shape, machine: Hardware, layout: Layout = ONE, teachers: Teachers = NOBODY
) -> list[tuple[str, ...]]:
    """Returns the plan of each stage as a table row, with the columns `COLUMNS`."""
    plans = _plans(stages, shape, machine, layout, teachers)
    return [_row(number, stage, one) for number, (stage, one) in enumerate(zip(stages, plans, strict=True), 1)]


COLUMNS = ("stage", "name", "kind", "ends after", "tokens", "calls", "tasks", "learns with", "optimizer", "memory")


def _row(number: int, stage: Stage, most: planning.Plan) -> tuple[str, ...]:
    recipe, training = stage.recipe, stage.recipe.training
    sft = stage.kind == "sft"
    _, needed, available = most.tightest
    fault = f", {most.too_long or 'too much'}" if not most.fits else ""
    until = recipe.warm_start.stop_at if sft else stage.advance_at
    rate = recipe.warm_start.learning_rate if sft else training.learning_rate
    source = stage.data if sft else f"{training.tasks_per_step}x{training.rollouts_per_task} {stage.tasks}"
    way = training.method if sft else f"{training.method} {training.objective}"
    return (
        str(number),
        stage.name,
        stage.kind,
        f"{stage.steps} steps" + (f" or {100 * until:g} %" if until else ""),
        str(recipe.agent.max_tokens),
        str(recipe.agent.max_calls),
        source if stage.kind != "distil" else f"{source}, scored by {stage.scored_by[:12]}",
        f"{way} lr {rate:g}, warm-up {(recipe.warm_start if sft else training).warmup_steps}",
        "new" if sft or stage.optimizer == "reset" else "kept",
        f"{needed / planning.GIB:.1f} of {available / planning.GIB:.1f} GiB{fault}",
    )


def _plans(
    stages: Sequence[Stage], shape: Shape, machine: Hardware, layout: Layout, teachers: Teachers
) -> list[planning.Plan]:
    ways = [way_of(stage) for stage in stages]
    layout = shared_out(layout, shape, machine, ways)
    return [
        planning.plan(
            shape,
            machine,
            way.recipe,
            max_tokens=way.max_tokens,
            rows=stage.recipe.agent.concurrent,
            layout=layout,
            teacher=teachers.get(stage.scored_by),
        )
        for stage, way in zip(stages, ways, strict=True)
    ]


def plan_json(recipe: StagedRecipe) -> dict[str, Any]:
    """Returns the recipe in the daemon's request format: name, digest and stages."""
    return {
        "name": recipe.name,
        "digest": recipe.digest,
        "stages": [json.loads(stage.model_dump_json()) for stage in recipe.stages],
    }
