"""Computes the settings recommended for a model on this machine, from the configuration and the ledger."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from appliance.config.configuration import Settings
    from appliance.planning import Hardware, Layout, Recommendation, Shape


def recommended(settings: Settings, shape: Shape, machine: Hardware) -> Recommendation | None:
    """Returns the settings that `assay model use` writes, beside the model's path, with the configured learners and
    engines: those that fit best, with vLLM where a GPU and its environment are there, in FP8 if nothing else fits.
    Returns None if no way of training fits. Raises as `layout_of`."""
    from appliance import planning
    from appliance.planning.recommend import STEPS

    values: dict[str, Any] = {}
    model, vllm, training = settings.model, settings.vllm, settings.recipe.training
    if machine.gpus and model.engine == "torch" and _has_vllm():
        values["model.engine"] = "vllm"
        model = model.model_copy(update={"engine": "vllm"})
    shared = model.engine == "vllm" and len(machine.gpus) <= model.learners  # a learner needs the engine's GPU
    if shared and not training.max_staleness:
        values["vllm.sleep"] = 2
        vllm = vllm.model_copy(update={"sleep": 2})
    layout = layout_of(settings.model_copy(update={"model": model, "vllm": vllm}), machine)
    items = evaluated(settings, STEPS[0])  # not the configured ones, so that the same settings are recommended again
    best = planning.recommend(shape, machine, training, layout, items)
    if best is None and layout.vllm and machine.gpus and _has_fp8():
        values |= {"vllm.fp8": True}
        if training.mismatch.rule == "none":
            values["recipe.training.mismatch.rule"] = "mask"
        layout = replace(layout, vllm=replace(layout.vllm, fp8=True))
        best = planning.recommend(shape, machine, training, layout, items)
    return None if best is None else replace(best, values={**values, **best.values})


def _has_vllm() -> bool:
    from appliance.inference.vllm.placement import find_environment, is_tested

    found = find_environment(None)
    return found is not None and is_tested(found)


def _has_fp8() -> bool:
    from appliance.inference.vllm.placement import FP8_CAPABILITY, gpu_capabilities

    found = gpu_capabilities()
    return bool(found) and all(capability >= FP8_CAPABILITY for _, capability in found)


def evaluated(settings: Settings, steps: int | None = None) -> int:
    """Returns the conversations of a cycle outside its training steps, with those of the recorded anchors; `steps`
    defaults to the configured ones. Raises AssayError for an unreadable ledger."""
    from appliance import planning
    from appliance.models.export_model import recorded_aliases
    from appliance.records.evaluations import ANCHOR

    aliases = recorded_aliases(settings.data / "ledger.sqlite3")
    anchors = {name.removeprefix(ANCHOR): model for name, model in aliases.items() if name.startswith(ANCHOR)}
    training = settings.recipe.training
    recipe = settings.recipe.model_copy(update={"training": training.model_copy(update={"steps": steps})})
    return planning.evaluated_items(recipe if steps else settings.recipe, anchors, aliases.get("champion"))


def layout_of(settings: Settings, machine: Hardware) -> Layout:
    """Returns how the configuration distributes learners and engines over GPUs. Raises ModelError for missing or
    invisible GPUs, ConfigError for learners that cannot train together."""
    from appliance.inference.gpu_numbers import VISIBLE
    from appliance.planning.hardware import gpu_layout
    from appliance.readiness.model import require_optimizer

    require_optimizer(settings.recipe.training, settings.model.learners)
    visible = os.environ.get(VISIBLE)
    return gpu_layout(settings.model, settings.vllm, settings.placement, len(machine.gpus), visible)


def machine_of(settings: Settings) -> Hardware:
    """Returns this machine's hardware, without GPUs if the configuration excludes them."""
    from appliance.planning import without_gpus
    from appliance.planning.hardware import find_machine

    machine = find_machine()
    return without_gpus(machine) if settings.model.device == "cpu" else machine


def shape_named(settings: Settings, model: str) -> tuple[str, Shape]:
    """Returns name and shape of the named model, or of the one that a night would start from. Raises UsageError and
    ModelError."""
    from appliance.models.export_model import published, recorded_alias
    from appliance.planning.model_shape import EMBEDDED
    from appliance.readiness.model import shape_in

    if not model:
        if champion := recorded_alias(settings.data / "ledger.sqlite3", "champion"):
            return f"{champion[:12]} (in service)", shape_in(settings.data / "models" / champion)
        if settings.model.path is None:
            return "the embedded one", EMBEDDED
        return str(settings.model.path), shape_in(settings.model.path)
    return model, shape_in(published(model, settings.data))
