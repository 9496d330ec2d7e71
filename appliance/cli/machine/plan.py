"""`assay plan`: computes which ways of training a model fit into this machine, and why the others do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from appliance.cli.machine.recommended import evaluated, layout_of, machine_of, recommended, shape_named
from appliance.cli.shell.options import read_settings
from appliance.cli.show.printing import Output, prints, show_fields, show_line, show_table
from appliance.errors import ExitCode
from appliance.models.measured_night import MeasuredNight, measured_night
from appliance.planning import Hardware, Vllm
from common.counting import counted
from runtime.model import FrozenModel

if TYPE_CHECKING:
    from appliance.config.configuration import Settings
    from appliance.planning import Layout, Plan, Recommendation, Shape

GIB = 1 << 30


class PlannedShape(FrozenModel):
    parameters: int
    layers: int
    hidden: int
    intermediate: int
    attention: int
    key_value: int
    vocabulary: int
    tied: bool
    positions: int
    file_bytes: int


class ConfiguredPlan(FrozenModel):
    method: str
    fits: bool
    needed: int
    """Bytes."""
    available: int
    phases: dict[str, int]
    beside: dict[str, int]
    """Machine memory needed beside a GPU, in bytes by phase."""
    limits: dict[str, tuple[int, int]]
    """Further limits by name: bytes needed, bytes available."""
    handed: int
    """Bytes of weights on their way in /dev/shm."""
    parts: dict[str, int]
    hours: float
    engine_share: float
    learners: int
    engines: int
    tensor_parallel: int
    engine_gpus: int
    """GPUs that learners leave to engines if there are enough others."""
    vllm: Vllm | None
    """Settings of vLLM if it samples."""
    dtype: str
    """Number format of the engines, as in `[model]`."""
    fewest_learners: int
    """Smallest number of learners with which the plan fits; 0 if none does."""


class PlannedWay(FrozenModel):
    method: str
    precision: str
    gradient_checkpointing: bool
    offload: str
    """State of the learner in main memory: nothing, activations, moments or both."""
    fits: bool
    fewest_learners: int
    """Smallest number of learners with which a pass of one conversation fits; 0 if none does."""
    needed: int
    host: int
    """Main memory needed beside a GPU, in bytes; 0 on a CPU."""
    phase: str
    pass_tokens: int
    micro_batch_tokens: int
    """Tokens of the pass that the other figures describe."""
    context: int
    rollouts_at_once: int
    engine_share: float
    hours: float


class PlanDocument(FrozenModel):
    do: str
    """First line: the command that makes it work, or what prevents that."""
    recommended: dict[str, Any]
    """Settings that `assay model use` writes for the model, by dotted key; empty if no way of training fits."""
    measured: MeasuredNight | None
    """Hours of a night as configured, from the newest cycle with the same recipe; None if there is none."""
    model: str
    shape: PlannedShape
    machine: Hardware
    configured: ConfiguredPlan
    ways: tuple[PlannedWay, ...]


@prints
def plan(
    model: Annotated[
        str,
        typer.Argument(
            help="A registered base model, a model folder, champion or a digest (default: the configured model)."
        ),
    ] = "",
) -> Output[PlanDocument]:
    """Compute which ways of training a model fit into this machine. Nothing is loaded.

    The first line is what to type. Then memory, context, passes, concurrent rollouts and hours of a night for full
    training, LoRA and QLoRA, as configured and otherwise, with the configured learners and engines. Hours are measured
    once a cycle with this recipe has recorded a step. Exit code 0: it fits as configured; 1: it does not; 2: unknown
    model, or learners that cannot train together as configured; 5: unreadable ledger, or configured GPUs are missing.

    Example: assay plan qwen3-0.6b
    """
    settings = read_settings()
    name, shape = shape_named(settings, model)
    machine = machine_of(settings)
    ledger = settings.data / "ledger.sqlite3"
    items = evaluated(settings)
    report = _report(settings, shape, machine, items)
    best = recommended(settings, shape, machine)
    measured = measured_night(ledger, settings.recipe, shape.parameters, items)
    first = _first(report, best, _usable(settings, model))
    document = PlanDocument(
        do=first,
        recommended=dict(best.values) if best else {},
        measured=measured,
        model=name,
        shape=PlannedShape(**{field: getattr(shape, field) for field in PlannedShape.model_fields}),
        machine=machine,
        configured=report.document(),
        ways=tuple(report.rows),
    )

    def show() -> None:
        show_line(first)
        show_line("")
        _show(name, shape, machine, report, measured)
        if settings.placement.learners == "cluster":
            show_line("learners run on a host of the cluster: run `assay plan` there")

    return Output(document, show, ExitCode.OK if report.configured.fits else ExitCode.FAILED_VERDICT)


class _Report(NamedTuple):
    """The configured way of training a model, beside the others, and whether they fit."""

    configured: Plan
    fewest_learners: int
    rows: list[PlannedWay]
    share: str
    """Memory of the engines, in words."""

    def document(self) -> ConfiguredPlan:
        one = self.configured
        own = ConfiguredPlan.model_fields.keys() - vars(one.layout).keys() - {"method", "fewest_learners"}
        values: dict[str, Any] = {name: getattr(one, name) for name in own} | vars(one.layout)
        return ConfiguredPlan(method=one.recipe.method, fewest_learners=self.fewest_learners, **values)


def _usable(settings: Settings, model: str) -> str:
    """Returns the name or folder by which `assay model use` finds the planned model; empty for one from training, and
    if the configuration was written for it."""
    from appliance.agent.budget import AgentBudget
    from appliance.models.export_model import recorded_alias
    from appliance.models.local_models import BASES, find_base

    if not model:
        path = settings.model.path
        written = settings.recipe.agent.max_tokens != AgentBudget().max_tokens
        if path is None or written or recorded_alias(settings.data / "ledger.sqlite3", "champion"):
            return ""
        return path.name if path.parent == settings.data / BASES else str(path)
    return model if find_base(model, settings.data) or "/" in model else ""


def _first(report: _Report, best: Recommendation | None, usable: str) -> str:
    """Returns the line that tells what to type."""
    if best is None and not report.configured.fits:
        return _advice(report)
    if report.configured.fits and not usable:
        return "it fits as configured: run `assay doctor`, then `assay serve`"
    if best is None or not usable:
        return _advice(report)
    way = f"{best.values['recipe.training.method']} in {best.values['recipe.training.precision']}"
    tokens, steps = best.values["recipe.agent.max_tokens"], best.values["recipe.training.steps"]
    return f"run `assay model use {usable}`: {way}, {tokens} tokens, {steps} steps, {_length(best.plan.hours)} a night"


def _report(settings: Settings, shape: Shape, machine: Hardware, items: int = 0) -> _Report:
    from appliance import planning

    recipe, agent = settings.recipe.training, settings.recipe.agent
    layout = layout_of(settings, machine)
    sizes: dict[str, Any] = {"max_tokens": agent.max_tokens, "rows": agent.concurrent, "layout": layout}
    configured = planning.plan(shape, machine, recipe, **sizes, extra_tokens=items * agent.max_tokens)
    advised = planning.advised(machine)
    rows = []
    for way in planning.ways(recipe, machine):
        # The smallest pass that can be: one conversation.
        least = planning.with_pass(way, agent.max_tokens)
        best = planning.largest_pass(shape, advised, least, agent.max_tokens, agent.concurrent, layout)
        taken = planning.with_pass(way, min(best or agent.max_tokens, 1 << 14))
        found = planning.plan(shape, machine, taken, **sizes, extra_tokens=items * agent.max_tokens)
        phase, needed, _ = found.tightest
        rows.append(
            PlannedWay(
                method=way.method,
                precision=way.precision,
                gradient_checkpointing=way.gradient_checkpointing,
                offload=way.offload,
                host=max(found.beside.values(), default=0),
                fits=found.fits,
                needed=needed,
                phase=phase,
                fewest_learners=planning.fewest_learners(shape, machine, least, **sizes),
                pass_tokens=best,
                context=planning.largest_context(shape, advised, least, agent.concurrent, layout),
                rollouts_at_once=planning.largest_group(shape, advised, least, agent.max_tokens, layout),
                engine_share=found.engine_share,
                hours=found.hours,
                micro_batch_tokens=taken.micro_batch_tokens,
            )
        )
    fewest = planning.fewest_learners(shape, machine, recipe, **sizes)
    share = _share(machine, configured, _refusal(settings, shape, machine))
    return _Report(configured, fewest, rows, share)


def _refusal(settings: Settings, shape: Shape, machine: Hardware) -> str:
    """Returns the reason why vLLM cannot get a GPU share beside a learner as configured; empty if it can."""
    from appliance.inference.engine import ModelError
    from appliance.planning.engine_share import engine_share, ways_of

    try:
        engine_share(settings, shape, machine, ways_of(settings.recipe))
    except ModelError as error:
        return str(error)
    return ""


def _share(machine: Hardware, one: Plan, none: str) -> str:
    """Describes the memory share that engines need and vLLM gets; `none` is the reason if that is unknown."""
    needed = f"engines need {100 * one.engine_share:.0f} % of {'a GPU' if machine.gpus else 'the memory'}"
    if none or one.layout.vllm is None or not machine.gpus:
        return none or needed
    return f"{needed}, vLLM gets {_percent(one.layout.vllm)}"


def _percent(vllm: Vllm) -> str:
    return f"{100 * vllm.memory_share:.0f} %{' with weights in FP8' if vllm.fp8 else ''}"


def _show(name: str, shape: Shape, machine: Hardware, report: _Report, measured: MeasuredNight | None) -> None:
    gpus = ", ".join(f"{one.name} {one.total / GIB:.0f} GiB ({one.free / GIB:.0f} free)" for one in machine.gpus)
    one = report.configured
    show_fields(
        [
            ("model", f"{name}: {shape.parameters / 1e6:,.1f} million parameters, {shape.layers} layers"),
            ("machine", f"{machine.memory / GIB:.1f} GiB of memory, {machine.cores} cores, {gpus or 'no NVIDIA GPU'}"),
            ("configured", _sentence(one)),
            ("largest parts", _parts(one)),
            *([("shared memory", _handed(one, machine.shared))] if one.handed else []),
            ("share", report.share),
            ("a night", _night(measured)),
        ]
    )
    show_line("")
    beside = ("memory",) if machine.gpus else ()
    show_table(
        ("way", "fits", "needs", *beside, "in", "context", "a pass", "at once", "a night"),
        [
            (
                f"{row.method} {row.precision}{_kept(row)}",
                "yes" if row.fits else f"{row.fewest_learners} learners" if row.fewest_learners > 1 else "no",
                f"{row.needed / GIB:.1f} GiB",
                *(f"{row.host / GIB:.1f} GiB" for _ in beside),
                row.phase,
                row.context or "none",
                row.pass_tokens or "none",
                row.rollouts_at_once or "none",
                _length(row.hours),
            )
            for row in report.rows
        ],
        empty="no way of training is known",
        narrow={"in": None},
    )
    show_line("context: maximum tokens; a pass: tokens per training pass; at once: concurrent rollouts")
    if machine.gpus:
        show_line("memory: main memory beside a GPU; offload: inputs of layers, of all weights also moments, are there")
        show_line(_assumed(one.layout, len(machine.gpus)))
    if not one.fits and report.fewest_learners > 1:
        show_line(f"as configured it fits with model.learners = {report.fewest_learners}")


def _kept(row: PlannedWay) -> str:
    """Describes what a way of training recomputes, or moves to main memory."""
    moved = {"nothing": "", "both": " +offload"}.get(row.offload, f" +offload {row.offload}")
    return moved or (" +checkpointing" if row.gradient_checkpointing else "")


def _night(measured: MeasuredNight | None) -> str:
    if measured is None:
        return "not measured: hours are computed, with every conversation at its longest"
    return f"{_length(measured.hours)}, from {counted(measured.steps, 'step')} of {measured.cycle} with this recipe"


def _length(hours: float) -> str:
    """Formats a duration in hours, or in minutes below one hour."""
    return f"{hours:.1f} h" if hours >= 1 else f"{max(1, round(60 * hours))} min"


def _sentence(one: Plan) -> str:
    name, needed, available = one.tightest
    limit = f"{name}: {needed / GIB:.1f} of {available / GIB:.1f} GiB" if name in one.limits else ""
    why = one.too_long or limit
    verdict = "fits" if one.fits else f"does not fit ({why})" if why else "does not fit"
    beside = max(one.beside, key=lambda name: one.beside[name], default="")
    memory = (
        f", {one.beside[beside] / GIB:.1f} of {one.memory / GIB:.1f} GiB of memory while {beside}" if beside else ""
    )
    return (
        f"{one.recipe.method} on the {one.device} {verdict}: {one.needed / GIB:.1f} of {one.available / GIB:.1f} GiB "
        f"while {one.largest}{memory}, {_length(one.hours)} a night at the most"
    )


def _parts(one: Plan) -> str:
    largest = sorted(one.parts.items(), key=lambda item: -item[1])[:4]
    return ", ".join(f"{name} {size / GIB:.1f} GiB" for name, size in largest)


def _handed(one: Plan, free: int) -> str:
    room = f"; {free / GIB:.1f} are free there" if free else ""
    files = one.layout.vllm is not None and one.layout.vllm.files
    otherwise = "; vLLM's use temporary files if it is full" if files else ""
    return f"{one.handed / GIB:.1f} GiB of weights passed through /dev/shm{room}{otherwise}"


def _assumed(layout: Layout, gpus: int) -> str:
    learners = "1 learner" if layout.learners == 1 else f"{layout.learners} learners, a GPU each"
    engines = "1 engine" if layout.engines == 1 else f"{layout.engines} engines"
    engines += " on the same" if layout.together > 1 else ""
    shared = "separate from learners" if layout.apart(gpus) else "shared with a learner"
    many = "1 GPU" if layout.tensor_parallel == 1 else f"{layout.tensor_parallel} GPUs"
    many += " each" if layout.together < layout.engines else ""
    if layout.vllm:
        many += f" (vLLM, {_percent(layout.vllm)} of each)"
    return f"assumed: {learners}; {engines}, held by {many}, {shared}; memory is the fullest GPU's"


def _advice(report: _Report) -> str:
    """Returns settings that make the training fit, from those known to fit."""
    if report.configured.too_long:
        return f"set recipe.agent.max_tokens to at most {report.configured.positions}, or use a longer-context model"
    fitting = found = [row for row in report.rows if row.fits]
    if not found:
        fitting = [row for row in report.rows if row.fewest_learners > 1]
    layout = report.configured.layout
    if not fitting and report.configured.tightest[0] == "weights in /dev/shm":
        return "make room for weights: run `mount -o remount,size=50% /dev/shm`"
    if not fitting and report.configured.tightest[0].endswith("(beside)"):
        return "no way of training fits: use a smaller model, or a machine with more main memory"
    if not fitting and layout.vllm and report.configured.device == "gpu":
        share = _percent(layout.vllm)
        return (
            f"no way of training fits beside vLLM with {share} of a GPU: set vllm.memory_share to the engines' need, "
            "vllm.sleep to 2 if a learner shares the GPU, or use a smaller model"
        )
    if not fitting:
        return "no way of training fits: use a smaller model, shorter conversations, or a machine with more memory"
    row = fitting[0]
    again = "true" if row.gradient_checkpointing else "false"
    return (
        f'this fits: [recipe.training] method = "{row.method}", precision = "{row.precision}", packing = true, '
        f"micro_batch_tokens = {row.micro_batch_tokens}, gradient_checkpointing = {again}"
        + (f', offload = "{row.offload}"' if row.offload != "nothing" else "")
        + ("" if found else f"; with model.learners = {row.fewest_learners}")
    )
