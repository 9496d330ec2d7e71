"""Checks of `assay doctor` on the model from which nights begin, and the first prompt that it gets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from appliance.cli.machine.doctor_checks import CheckGrade, DoctorCheck, failed, ok, warning
from appliance.inference.engine import ModelError
from appliance.models.export_model import alias
from appliance.models.local_models import BASES, registered_bases
from appliance.readiness.model import ConfiguredModel, try_text
from appliance.settings.config_layers import ConfigError
from appliance.text.printable import printable
from common.errors import HintedError

if TYPE_CHECKING:
    from appliance.config.configuration import Settings

GIB = 1 << 30
SHORT, WHOLE = 240, 20_000
"""Characters of a prompt in the figure, and in the whole text."""


def model(settings: Settings, memory: int | None = None) -> DoctorCheck:
    """Checks the configured model as `assay cycle start` does; nights begin from a model in service if there is one."""
    if champion := in_service(settings.data / "ledger.sqlite3"):
        return ok("model", f"{champion[:12]} is in service", "nights start from it; model.path is no longer read")
    try:
        found = ConfiguredModel(
            settings.model,
            memory,
            settings.recipe.training,
            settings.vllm,
            placement=settings.placement,
            clustered=settings.cluster.address is not None,
        ).require(settings.recipe.agent.max_tokens)
    except ConfigError as error:
        return failed("model", str(error), error.hint)
    if found is None:
        others = registered_bases(settings.data)
        use = f"registered: {', '.join(others)}; run `assay model use {others[0]}`" if others else ""
        return ok("model", "embedded model: model.path is not set", use)
    path = settings.model.path
    registered = path is not None and path.parent == settings.data / BASES
    place = f"registered as {path.name}" if path is not None and registered else f"in {path}"
    figure = f"{found.parameters / 1e6:.1f} million parameters, {found.entries} tokens, {place}"
    needs = f"training it takes at least {found.training_bytes / GIB:.1f} GiB of memory"
    omits = "; the template's default system text is left out" if found.omits else ""
    return ok("model", figure, f"conversation format {found.format}{omits}; {needs}")


def in_service(ledger: Path) -> str:
    """Returns the digest of the champion in a ledger; empty without a readable one."""
    return alias(ledger, "champion") or ""


def first_prompt(settings: Settings) -> DoctorCheck | None:
    """Shows an easy training task of the first taskset exactly as the model gets it. None for the embedded model."""
    champion = in_service(settings.data / "ledger.sqlite3")
    folder = settings.data / "models" / champion if champion else settings.model.path
    if folder is None:
        return None
    name = settings.recipe.tasksets[0]
    try:
        wanted = _task(settings.data, name)
        if wanted is None:
            return None
        tried = try_text(folder, **wanted)
    except ModelError as error:
        return failed("first prompt", str(error), error.hint)
    except HintedError as error:
        return warning("first prompt", f"{name}: {error}", error.hint)
    text = str(tried["prompt"])
    whole = printable(text, limit=WHOLE, lines=True)
    tokens, most = int(tried["length"]), settings.recipe.agent.max_tokens
    figure = f"{tokens} tokens of {most}: {printable(text, limit=SHORT)}"
    if tokens >= most:
        advice = f"no token is left for an answer: raise recipe.agent.max_tokens above {tokens}"
        return failed("first prompt", figure, advice).model_copy(update={"whole": whole})
    about = f"a task of {name}, as the model reads it; --json shows all of it"
    return DoctorCheck(name="first prompt", grade=CheckGrade.OK, figure=figure, advice=about, whole=whole)


def _task(data: Path, name: str) -> dict[str, Any] | None:
    """Returns the messages and tools of a taskset's easiest training task, for `try_text`; None if it has none."""
    from appliance.agent.texts import messages_for_chat
    from appliance.curriculum.own_tasksets import catalog_in
    from appliance.rendering.tools import tools_of
    from curriculum.contract.task import Split
    from curriculum.seeds import seeds
    from curriculum.summary import training_drafts

    catalog = catalog_in(data)
    drafts = training_drafts(catalog, name, 0, 1, seeds(Split.TRAIN))
    if not drafts:
        return None
    (seed, draft), *_ = drafts
    task = catalog.task_of(draft, name, 0, seed)
    return {
        "messages": [(one.role, one.text) for one in task.messages],
        "for_chat": [(one.role, one.text) for one in messages_for_chat(task)],
        "tools": [tool.model_dump(mode="json") for tool in tools_of(task)],
    }
