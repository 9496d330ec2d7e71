"""The recipe has every number that makes a checkpoint, in one place. Its digest is in the checkpoint that it made.

The defaults are the embedded policy model's (0.66 M parameters, 2 cores); a larger model replaces them in the
configuration. Sources: GRPO-RoC 2508.20722, clip-higher and token-level loss DAPO 2503.14476.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from appliance.agent.branching import Branching
from appliance.agent.budget import AgentBudget
from appliance.learning.errors import LearningError
from appliance.learning.limits.collapse import CollapseRecipe
from appliance.learning.limits.straggler_limit import StragglerRecipe
from appliance.learning.limits.turn_budget import TurnRecipe
from appliance.learning.objectives.registry import OBJECTIVES
from appliance.learning.recipes.loss import MismatchRecipe, PlanningRecipe, mismatch_refusal, whole_distribution
from appliance.records.record import FiniteRecord, Record
from curriculum.names import CALCULATORS
from runtime.model import UnitName

ProposalName = Literal["calculation", "deduction", "abduction", "induction", "puzzle", "statement"]


class ProposerRecipe(Record):
    proposals: Annotated[int, UnitName("proposals")] = Field(0, ge=0)
    """Problems that the policy model proposes in each step; those that are proved take the place of as many tasks. With
    0 it proposes none."""
    kinds: tuple[ProposalName, ...] = Field(("calculation",), min_length=1)
    """What is proposed, in turn: lines for a calculator, which the seedling can write; programs in three modes, puzzles
    and statements in Lean, for larger models."""
    reward: Literal["azr", "variance", "min", "4p1p"] = "azr"
    """What a proposal earns whose task a share p of the rollouts passed: `azr` 1 - p where 0 < p < 1 (2505.03335),
    `variance` exp(-(p(1-p) - .25)^2 / .02) (2510.24684), `min` min(p, 1-p) less the similarity to earlier ones
    (2508.05004), `4p1p` 4p(1-p). A refused one earns 0."""

    def refusal(self, tasks: int, staleness: int) -> str | None:
        """Says why a step of so many tasks cannot have these proposals; None when it can."""
        if self.proposals > tasks:
            return f"{self.proposals} proposals are more than the {tasks} tasks of a step: lower proposer.proposals"
        if self.proposals and staleness:
            return "proposals need max_staleness = 0: a step's tasks are made of what its own weights proposed"
        return None


class BranchingRecipe(FiniteRecord):
    where: Literal["nowhere", "failed_call", "repair", "highest_entropy", "both"] = "nowhere"
    """Where attempts branch: before the first call that failed after one that worked, at the turn after the first
    failed call, before the token that the policy model was least sure of, or at a failed call and otherwise there
    (`both`)."""
    continuations: Annotated[int, UnitName("rollouts")] = Field(1, ge=1)
    """Branches of one attempt, beside the attempt itself."""
    share: Annotated[float, UnitName("share")] = Field(0.5, gt=0, lt=1)
    """How much of the rollouts of each task, and so at most of their tokens, is for branches."""

    def places(self, rollouts: int) -> int:
        """Counts those of a task's rollouts that are for branches."""
        return 0 if self.where == "nowhere" else int(self.share * rollouts)

    def refusal(self, rollouts: int, staleness: int = 0) -> str | None:
        """Says why so many rollouts of a task cannot be shared out; None when they can."""
        if self.where == "nowhere":
            return None
        if staleness:
            return (
                f"rollouts that go on while the learner works (max_staleness = {staleness}) do not branch, because "
                'what lies below a branch would be of several policies: take max_staleness = 0, or where = "nowhere"'
            )
        places = self.places(rollouts)
        if places < self.continuations:
            return (
                f"{self.share:g} of {rollouts} rollouts are {places} places for branches, too few for "
                f"{self.continuations} continuations: raise share or rollouts_per_task"
            )
        if rollouts - places < 2:
            return f"{self.share:g} of {rollouts} rollouts leaves fewer than 2 attempts to compare: lower share"
        return None

    def of_task(self, rollouts: int) -> Branching | None:
        """Says how the attempts of a task branch; None where they do not. Who may is settled in advance."""
        if self.where == "nowhere":
            return None
        first = self.places(rollouts) // self.continuations
        return Branching(each=self.continuations, in_all=1 << 62, where=self.where, first=first)


SFT_PASS_TOKENS = 1 << 13
"""Most tokens of one padded pass of SFT, padding included; a longer demonstration has a pass of its own."""


def _known_objective(name: str) -> str:
    if name not in OBJECTIVES:
        raise ValueError(f"there is no objective {name!r}; there are {', '.join(sorted(OBJECTIVES))}")
    return name


class WarmStartRecipe(FiniteRecord):
    """SFT on generated traces teaches format and tool use. Which call is right is shown only with `right_choice`."""

    steps: Annotated[int, UnitName("steps")] = Field(500, ge=1)
    """Steps after which the warm start ends at the latest."""
    batch: Annotated[int, UnitName("demonstrations")] = Field(64, ge=1)
    """Demonstrations of one step."""
    learning_rate: Annotated[float, UnitName("per step")] = Field(3e-3, gt=0)
    """Learning rate of the warm start, at its highest."""
    warmup_steps: Annotated[int, UnitName("steps")] = Field(30, ge=0)
    """Steps in which the learning rate rises from nothing."""
    demonstrations: Annotated[int, UnitName("demonstrations")] = Field(8000, ge=1)
    """Demonstrations that are made in advance, to draw batches from."""
    right_choice: Annotated[float, UnitName("share")] = Field(0.6, ge=0, le=1)
    """How often a demonstration picks the operation that the question asks for; otherwise another of its arity."""
    fail_first: Annotated[float, UnitName("share")] = Field(0.5, ge=0, le=1)
    """How often a demonstration shows a failing call and its repair."""
    stop_at: Annotated[float, UnitName("share")] = Field(0.5, gt=0, le=1)
    """Sampled success on validation tasks at which the warm start ends."""
    validate_every: Annotated[int, UnitName("steps")] = Field(150, ge=1)
    """Steps between two validations."""
    validation_items: Annotated[int, UnitName("tasks")] = Field(128, ge=1)
    """Tasks of one validation."""
    checkpoint_every: Annotated[int, UnitName("steps")] = Field(50, ge=1)
    """Steps between two checkpoints, from which a warm start that was stopped goes on."""


class TrainingRecipe(FiniteRecord):
    steps: Annotated[int, UnitName("steps")] = Field(70, ge=0)
    """Training steps of a night."""
    tasks_per_step: Annotated[int, UnitName("tasks")] = Field(24, ge=1)
    """Tasks of one step; the rollouts of one task are a group."""
    rollouts_per_task: Annotated[int, UnitName("rollouts")] = Field(16, ge=2)
    """Rollouts that are sampled of each task: 2G of GRPO-RoC."""
    keep: Annotated[int, UnitName("rollouts")] = Field(8, ge=2, validate_default=True)
    """Rollouts that are trained on of each task: G of GRPO-RoC; as many as are sampled leave nothing to choose."""
    refills: Annotated[int, UnitName("rounds")] = Field(1, ge=0)
    """Rounds in which groups whose rewards are all equal, which carry no signal, are replaced by fresh tasks."""
    max_staleness: Annotated[int, UnitName("steps")] = Field(0, ge=0, le=64)
    """By how many steps the weights that drew a token may be older than those that learn from it. With 0 sampler and
    learner take turns; with more, rollouts go on while the learner works, and new weights reach them on their way."""
    selector: Literal["roc", "roc_sorted", "uniform"] = "roc"
    """`roc` samples by inverse penalty as in the paper, `roc_sorted` truncates as in its release, `uniform` is GRPO
    with the same compute."""
    method: Literal["full", "lora"] = "full"
    """`full` trains every weight, `lora` an adapter beside the frozen ones (2106.09685), on all linear layers but the
    head."""
    lora_rank: Annotated[int, UnitName("rank")] = Field(16, ge=1, le=512)
    """Rank of the adapter's matrices; with `lora` only."""
    lora_alpha: Annotated[float, UnitName("factor")] = Field(32.0, gt=0)
    """The adapter counts alpha / rank; with `lora` only."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """What the layers compute in. Trained weights, optimizer and log-probabilities are float32 in either; the frozen
    weights of `lora` are kept in it."""
    gradient_checkpointing: bool = False
    """Computes each layer's activations again for its gradient instead of keeping them: less memory, a third more
    computing."""
    packing: bool = False
    """Rollouts lie one behind another without padding, and see nothing of each other; otherwise they are padded."""
    micro_batch_tokens: Annotated[int, UnitName("tokens")] = Field(4096, ge=16)
    """Tokens in one pass through the model where rollouts are packed; a longer rollout has a pass of its own."""
    optimizer: Literal["adamw", "adamw_8bit"] = "adamw"
    """`adamw_8bit` keeps the moments in 8 bits (bitsandbytes, 2110.02861), on an NVIDIA GPU, for one learner only."""
    objective: Annotated[str, AfterValidator(_known_objective)] = "dapo"
    """What is minimised: grpo, dapo, dr_grpo, gspo, cispo, dppo, max_rl or reinforce."""
    learning_rate: Annotated[float, UnitName("per step")] = Field(3e-4, gt=0)
    """Learning rate of the training, at its highest."""
    warmup_steps: Annotated[int, UnitName("steps")] = Field(5, ge=0)
    """Steps in which the learning rate rises from nothing."""
    clip_low: Annotated[float, UnitName("ratio")] = Field(
        default_factory=lambda data: OBJECTIVES[data["objective"]].clip[0], gt=0, le=1
    )
    """How far the ratio may fall below 1 before it is clipped; otherwise as the objective has it. 1 is no bound."""
    clip_high: Annotated[float, UnitName("ratio")] = Field(
        default_factory=lambda data: OBJECTIVES[data["objective"]].clip[1], gt=0
    )
    """How far the ratio may rise above 1 before it is clipped; otherwise as the objective has it."""
    minibatches: Annotated[int, UnitName("updates")] = Field(1, ge=1)
    """Updates of the weights in one step, each on its part of the step's rollouts."""
    micro_batch: Annotated[int, UnitName("rollouts")] = Field(128, ge=1)
    """Rollouts in one pass through the model where they are padded; fewer take less memory."""
    gradient_norm: Annotated[float, UnitName("norm")] = Field(1.0, gt=0)
    """A longer gradient is shortened to this."""
    temperature: Annotated[float, UnitName("temperature")] = Field(1.0, ge=0.01)
    """Temperature of the rollouts that are trained on. vLLM raises a lower one to 0.01, or takes it for 0."""
    watch_every: Annotated[int, UnitName("steps")] = Field(10, ge=1)
    """Steps between two looks at held-out tasks."""
    watch_items: Annotated[int, UnitName("tasks")] = Field(96, ge=1)
    """Held-out tasks of one such look."""
    watch_drop: Annotated[float, UnitName("share")] = Field(0.15, gt=0, le=1)
    """A fall of held-out success this far below its best ends training at the best checkpoint."""
    checkpoint_every: Annotated[int, UnitName("steps")] = Field(10, ge=1)
    """Steps between two checkpoints, from which a night that was stopped goes on."""

    reward: Literal["passed", "score"] = "passed"
    """`passed` is 1 or 0; `score` gives a checklist that pays for single items its share."""
    top_p: Annotated[float, UnitName("share")] = 1.0
    """Stays at 1: what is trained on is sampled from the whole distribution."""
    top_k: Annotated[int, UnitName("tokens")] = 0
    """Stays at 0, for the same reason."""
    min_p: Annotated[float, UnitName("share")] = 0.0
    """Stays at 0, for the same reason."""
    mismatch: MismatchRecipe = MismatchRecipe()
    planning: PlanningRecipe = PlanningRecipe()
    branching: BranchingRecipe = BranchingRecipe()
    collapse: CollapseRecipe = CollapseRecipe()
    difficulty: Literal["uniform", "adaptive"] = "uniform"
    """`uniform` asks all levels equally often, `adaptive` those that the model passes between .2 and .8 of the time, by
    what the steps before came to; it needs `max_staleness = 0`."""

    turns: TurnRecipe = TurnRecipe()
    stragglers: StragglerRecipe = StragglerRecipe()

    _LATER: ClassVar = (
        "reward", "top_p", "top_k", "min_p", "mismatch", "planning", "method", "lora_rank", "lora_alpha", "precision",
        "gradient_checkpointing", "packing", "micro_batch_tokens", "optimizer", "max_staleness",
        "branching", "collapse", "difficulty", "turns", "stragglers",
    )  # fmt: skip
    """Fields that the first version did not have, whose checkpoints name the digest without them."""

    def require_learners(self, learners: int) -> None:
        """Raises LearningError where so many cannot train together as it says."""
        if learners > 1 and self.optimizer == "adamw_8bit":
            raise LearningError(
                f"recipe.training.optimizer is adamw_8bit, and there are {learners} learners: bitsandbytes updates no "
                "weights of which each learner has a part",
                hint="set recipe.training.optimizer to adamw, or model.learners to 1",
            )

    @field_validator("top_p", "top_k", "min_p")
    @classmethod
    def _whole_distribution(cls, value: float, info: ValidationInfo) -> float:
        whole_distribution(str(info.field_name), value, 1.0 if info.field_name == "top_p" else 0.0)
        return value

    @field_validator("keep")
    @classmethod
    def _no_more_than_sampled(cls, value: int, info: ValidationInfo) -> int:
        if value > (sampled := info.data.get("rollouts_per_task", value)):
            raise ValueError(f"only {sampled} are sampled: lower it, or raise rollouts_per_task")
        return value

    @field_validator("mismatch")
    @classmethod
    def _counted_once(cls, value: MismatchRecipe, info: ValidationInfo) -> MismatchRecipe:
        name = info.data.get("objective")
        why = name and mismatch_refusal(value, name, OBJECTIVES[name], info.data.get("minibatches", 1))
        if why:
            raise ValueError(why)
        return value

    @field_validator("branching")
    @classmethod
    def _shared_out(cls, value: BranchingRecipe, info: ValidationInfo) -> BranchingRecipe:
        why = value.refusal(info.data.get("rollouts_per_task", 2**30), info.data.get("max_staleness", 0))
        if why:
            raise ValueError(why)
        return value

    @field_validator("difficulty")
    @classmethod
    def _after_the_steps_before(cls, value: str, info: ValidationInfo) -> str:
        if value == "adaptive" and info.data.get("max_staleness", 0):
            raise ValueError("adaptive needs max_staleness = 0: it looks at what the steps before came to")
        return value

    @field_validator("turns")
    @classmethod
    def _grow_after_steps(cls, value: TurnRecipe, info: ValidationInfo) -> TurnRecipe:
        if value.first and info.data.get("max_staleness", 0):
            raise ValueError("first needs max_staleness = 0: a budget grows by what the steps before came to")
        return value

    def digest(self) -> str:
        """Computes the digest that the first version gave this recipe where that version had it, so that a night which
        it began goes on: without later fields that are at their defaults, and under the objective's name of then."""
        usual = TrainingRecipe.model_construct()
        same = {name for name in self._LATER if getattr(self, name) == getattr(usual, name)}
        named = self.model_copy(update={"objective": _NAMED_THEN.get(self.objective, self.objective)})
        return hashlib.sha256(named.model_dump_json(exclude=same).encode()).hexdigest()


_NAMED_THEN = {"dapo": "grpo", "grpo": "grpo, each answer the same"}
"""The first version called the token-level form grpo."""


class EvaluationRecipe(FiniteRecord):
    sealed_items: Annotated[int, UnitName("questions")] = Field(512, ge=1)
    """Sealed questions that champion and candidate answer."""
    unsolvable_items: Annotated[int, UnitName("questions")] = Field(192, ge=1)
    """Questions that cannot be solved, for the candidate alone: with 190 of them, no pass bounds hacks by 2 %."""
    temperature: Annotated[float, UnitName("temperature")] = Field(1.0, ge=0.01)
    """Temperature of the sampled answers, which decide; the greedy ones are stated beside them."""


class Recipe(Record):
    tasksets: tuple[str, ...] = CALCULATORS
    """What a cycle asks: names that `assay curriculum ls` lists, the owner's too; the policy's [data] says which of
    them are trained on."""
    warm_start: WarmStartRecipe = WarmStartRecipe()
    training: TrainingRecipe = TrainingRecipe()
    proposer: ProposerRecipe = ProposerRecipe()
    agent: AgentBudget = AgentBudget()
    evaluation: EvaluationRecipe = EvaluationRecipe()

    @model_validator(mode="after")
    def _proposals_fit(self) -> Recipe:
        why = self.proposer.refusal(self.training.tasks_per_step, self.training.max_staleness)
        if why:
            raise ValueError(why)
        return self

    @classmethod
    def recorded(cls, data: Mapping[str, Any]) -> Recipe:
        """Reads a recipe from a cycle's record, which has all of its fields: in one of the first version, `grpo` is
        what is called `dapo` now. Raises ValidationError."""
        training = data.get("training")
        if isinstance(training, Mapping) and training.get("objective") == "grpo" and "mismatch" not in training:
            data = {**data, "training": {**training, "objective": "dapo"}}
        return cls.model_validate(data)
