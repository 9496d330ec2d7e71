"""The recipe has every number that makes a checkpoint, in one place. Its digest is in the checkpoint that it made.

The defaults are the embedded policy model's (0.66 M parameters, 2 cores); a larger model replaces them in the
configuration. Sources: GRPO-RoC 2508.20722, clip-higher and token-level loss DAPO 2503.14476.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from appliance.agent.budget import AgentBudget
from appliance.learning.objectives.registry import OBJECTIVES
from appliance.records.record import Record
from curriculum.names import CALCULATORS


def _known_objective(name: str) -> str:
    if name not in OBJECTIVES:
        raise ValueError(f"there is no objective {name!r}; there are {', '.join(sorted(OBJECTIVES))}")
    return name


class WarmStartRecipe(Record):
    """SFT on generated traces teaches format and tool use. Which call is right is shown only with `right_choice`."""

    steps: int = Field(500, ge=1)
    batch: int = Field(64, ge=1)
    learning_rate: float = Field(3e-3, gt=0)
    warmup_steps: int = Field(30, ge=0)
    demonstrations: int = Field(8000, ge=1)
    right_choice: float = Field(0.6, ge=0, le=1)
    """How often a demonstration picks the operation that the question asks for; otherwise another of its arity."""
    fail_first: float = Field(0.5, ge=0, le=1)
    """How often a demonstration shows a failing call and its repair."""
    stop_at: float = Field(0.5, gt=0, le=1)
    """Sampled success on validation tasks at which the warm start ends."""
    validate_every: int = Field(150, ge=1)
    validation_items: int = Field(128, ge=1)
    checkpoint_every: int = Field(50, ge=1)


class TrainingRecipe(Record):
    steps: int = Field(70, ge=0)
    tasks_per_step: int = Field(24, ge=1)
    rollouts_per_task: int = Field(16, ge=2)
    """2G: what is sampled."""
    keep: int = Field(8, ge=2)
    """G: what is trained on."""
    refills: int = Field(1, ge=0)
    """Rounds in which groups whose rewards are all equal, which carry no signal, are replaced by fresh tasks."""
    selector: Literal["roc", "roc_sorted", "uniform"] = "roc"
    """`roc` samples by inverse penalty as in the paper, `roc_sorted` truncates as in its release, `uniform` is GRPO
    with the same compute."""
    objective: Annotated[str, AfterValidator(_known_objective)] = "grpo"
    """What is minimised: a row of `appliance.learning.objectives.registry`."""
    learning_rate: float = Field(3e-4, gt=0)
    warmup_steps: int = Field(5, ge=0)
    clip_low: float = Field(default_factory=lambda data: OBJECTIVES[data["objective"]].clip[0], gt=0, lt=1)
    """How far the ratio may fall below 1 before it is clipped; otherwise as the objective has it."""
    clip_high: float = Field(default_factory=lambda data: OBJECTIVES[data["objective"]].clip[1], gt=0)
    minibatches: int = Field(1, ge=1)
    micro_batch: int = Field(128, ge=1)
    gradient_norm: float = Field(1.0, gt=0)
    temperature: float = Field(1.0, gt=0)
    watch_every: int = Field(10, ge=1)
    """Steps between two looks at held-out tasks."""
    watch_items: int = Field(96, ge=1)
    watch_drop: float = Field(0.15, gt=0, le=1)
    """A fall of held-out success this far below its best ends training at the best checkpoint."""
    checkpoint_every: int = Field(10, ge=1)


class EvaluationRecipe(Record):
    sealed_items: int = Field(512, ge=1)
    unsolvable_items: int = Field(192, ge=1)
    """Questions that cannot be solved, for the candidate alone: with 190 of them, no pass bounds hacks by 2 %."""
    temperature: float = Field(1.0, gt=0)


class Recipe(Record):
    tasksets: tuple[str, ...] = CALCULATORS
    """What a cycle asks, by names in `curriculum.registry`; the policy's [data] says which of them are trained on."""
    warm_start: WarmStartRecipe = WarmStartRecipe()
    training: TrainingRecipe = TrainingRecipe()
    agent: AgentBudget = AgentBudget()
    evaluation: EvaluationRecipe = EvaluationRecipe()
