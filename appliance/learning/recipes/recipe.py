"""Recipe: every number that decides a checkpoint, in one place. A checkpoint records its digest.

The defaults suit the embedded policy model (0.66 M parameters, 2 cores); the configuration overrides them for larger
ones. Sources: GRPO-RoC 2508.20722, clip-higher and token-level loss DAPO 2503.14476.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from appliance.agent.branching import Branching
from appliance.agent.budget import AgentBudget
from appliance.learning.errors import LearningError
from appliance.learning.limits.early_stopping import CollapseRecipe
from appliance.learning.limits.rollout_limits import StragglerRecipe, TurnRecipe
from appliance.learning.objectives.objective import Objective
from appliance.learning.objectives.registry import OBJECTIVES
from appliance.records.record import FiniteRecord, Record
from curriculum.names import CALCULATORS
from runtime.model import UnitName

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
"""Settings of config.json for the number of a mixture's experts."""
WITHOUT_ROUTES = 'set recipe.training.mismatch.rule to "mask", or recipe.training.method to "lora"'
"""Advice for a mixture whose choices of experts cannot be replayed."""


class MismatchRecipe(FiniteRecord):
    rule: Literal["none", "truncate", "mask", "reject"] = "none"
    """Treatment of tokens whose probabilities differ between sampler and trainer. `truncate` weighs them by their
    ratio, up to `most`; `mask` drops those with a ratio outside `low` to `high`, `reject` whole samples whose ratios
    have their geometric mean outside. No ratio is applied twice."""
    anchor: Literal["sampler", "trainer"] = "sampler"
    """Reference log-probabilities of the objective's own ratio. `trainer` requires one update per step."""
    most: Annotated[float, UnitName("ratio")] = Field(2.0, ge=1)
    """Maximum weight of `truncate`."""
    low: Annotated[float, UnitName("ratio")] = Field(0.5, ge=0, lt=1)
    """Minimum ratio kept by `mask`, or mean by `reject`: 0.99 or more is usual there."""
    high: Annotated[float, UnitName("ratio")] = Field(5.0, gt=1)
    """Maximum ratio kept by `mask`, or mean by `reject`: 1.01 or less is usual there."""


class PlanningRecipe(FiniteRecord):
    credit: bool = False
    """Gives tokens of strategic n-grams more of the credit (HICRA, 2509.03646)."""
    alpha: Annotated[float, UnitName("share")] = Field(0.2, ge=0, le=1)
    """Addition to their advantage, as a share of its size."""


class SelfDistillationRecipe(FiniteRecord):
    shown: Literal["nothing", "solution", "reason"] = "nothing"
    """Text beside the question with which the policy model scores its own tokens: `solution`, a passing rollout of the
    task (SDFT, 2601.19897); `reason`, for failed rollouts that and the verdict's reason (SDPO, 2601.20802)."""
    share: Annotated[float, UnitName("share")] = Field(1.0, gt=0, le=1)
    """Share of the advantage that these scores give a scored token; the rewards give the rest."""

    def refusal(self, objectives: Container[str], staleness: int, planning: bool) -> str | None:
        """Returns the reason that the model cannot score its own tokens in such a training, or None."""
        if self.shown == "nothing":
            return None
        if staleness:
            return f"needs max_staleness = 0, not {staleness}: the weights that sampled a step also score it"
        if "gspo" in objectives:
            return "gspo weighs whole answers, but the scores are of tokens: use dapo or another objective"
        if planning:
            return "planning.credit also changes the advantage of single tokens: use one of the two"
        return None


def mismatch_refusal(recipe: MismatchRecipe, name: str, objective: Objective, minibatches: int) -> str | None:
    """Returns the reason that a sampler-trainer mismatch correction is incompatible with an objective, or None."""
    if recipe.anchor == "trainer" and objective.anchor == "sampler":
        return (
            f"{name} bounds the distance from the sampler: over the trainer's own log-probabilities its ratio is about "
            '1, and the bound never applies; leave the anchor at "sampler"'
        )
    if recipe.anchor == "trainer" and minibatches > 1:
        return (
            f'the anchor "trainer" needs one update per step, not {minibatches}, because later ones would need the '
            'log-probabilities before the first: use minibatches = 1, or leave the anchor at "sampler"'
        )
    if recipe.rule == "truncate" and recipe.anchor == "sampler" and objective.anchor != "none":
        otherwise = ', or anchor = "trainer"' if objective.anchor == "either" else ""
        return (
            f"the ratio of {name} is to the sampler's log-probabilities and already corrects the mismatch: "
            f'truncated importance sampling would apply it twice; use rule = "mask", "reject" or "none"{otherwise}'
        )
    return None


def whole_distribution(name: str, value: float, off: float) -> None:
    """Raises ValueError if a sampling setting is not at its `off` value: training must sample from the whole
    distribution."""
    if value != off:
        raise ValueError(
            f"training samples from the whole distribution: with {name} = {value:g} the sampler's probabilities are "
            "those of the kept tokens and the trainer's of all, so every importance ratio is off by the kept mass "
            f"before anything is learned; leave {name} at {off:g}, and use the temperature"
        )


ProposalName = Literal["calculation", "deduction", "abduction", "induction", "puzzle", "statement"]


class ProposerRecipe(Record):
    proposals: Annotated[int, UnitName("proposals")] = Field(0, ge=0)
    """Problems that the policy model proposes per step; proved ones replace as many tasks. 0 disables proposals."""
    kinds: tuple[ProposalName, ...] = Field(("calculation",), min_length=1)
    """Kinds of proposals, in turn: calculator lines, which the seedling can write; for larger models programs in three
    modes, puzzles, and statements in Lean."""
    reward: Literal["azr", "variance", "min", "4p1p"] = "azr"
    """Reward of a proposal whose task a share p of rollouts passed: `azr` 1 - p where 0 < p < 1 (2505.03335),
    `variance` exp(-(p(1-p) - .25)^2 / .02) (2510.24684), `min` min(p, 1-p) less the similarity to earlier ones
    (2508.05004), `4p1p` 4p(1-p). A refused one earns 0."""

    def refusal(self, tasks: int, staleness: int) -> str | None:
        """Returns the reason that a step of `tasks` tasks cannot include the recipe's proposed tasks, or None."""
        if self.proposals > tasks:
            return f"{self.proposals} proposals are more than the {tasks} tasks of a step: lower proposer.proposals"
        if self.proposals and staleness:
            return "proposals need max_staleness = 0: a step's own weights propose its tasks"
        return None


class BranchingRecipe(FiniteRecord):
    where: Literal["nowhere", "failed_call", "repair", "highest_entropy", "both"] = "nowhere"
    """Branch points of attempts: before the first failed call after a successful one, at the turn after the first
    failed call, before the most uncertain token, or at a failed call if any, else there (`both`)."""
    continuations: Annotated[int, UnitName("rollouts")] = Field(1, ge=1)
    """Branches per attempt, beside the attempt itself."""
    share: Annotated[float, UnitName("share")] = Field(0.5, gt=0, lt=1)
    """Maximum share of each task's rollouts, and so of their tokens, used for branches."""

    def places(self, rollouts: int) -> int:
        """Returns the number of a task's rollouts reserved for branches."""
        return 0 if self.where == "nowhere" else int(self.share * rollouts)

    def refusal(self, rollouts: int, staleness: int = 0) -> str | None:
        """Returns the reason that a task's rollouts cannot be divided into attempts and branches by this recipe, or
        None."""
        if self.where == "nowhere":
            return None
        if staleness:
            return (
                f"rollouts that continue while the learner works (max_staleness = {staleness}) cannot branch, because "
                'a branch would mix several policies: set max_staleness = 0, or where = "nowhere"'
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
        """Returns the rule by which a task's attempts branch, or None without branching. The attempts that may branch
        are fixed in advance."""
        if self.where == "nowhere":
            return None
        first = self.places(rollouts) // self.continuations
        return Branching(each=self.continuations, in_all=1 << 62, where=self.where, first=first)


SFT_PASS_TOKENS = 1 << 13
"""Maximum tokens of a padded SFT pass, including padding; a longer demonstration gets its own pass."""


def _known_objective(name: str) -> str:
    if name not in OBJECTIVES:
        raise ValueError(f"unknown objective {name!r}; use one of {', '.join(sorted(OBJECTIVES))}")
    return name


def _named(settings: Mapping[str, Any]) -> frozenset[str]:
    """Returns the names of all objectives in a training's settings; invalid ones are missing there."""
    own = (one.partition("=")[2] for one in settings.get("objectives", ()))
    return frozenset(filter(None, (settings.get("objective", ""), *own)))


def _own_objective(text: str) -> str:
    taskset, equals, name = text.partition("=")
    if not (taskset and equals):
        raise ValueError(f'{text!r} names no taskset and objective: write "TASKSET=OBJECTIVE"')
    return f"{taskset}={_known_objective(name)}"


class WarmStartRecipe(FiniteRecord):
    """Settings of SFT on generated traces, which teaches format and tool use; `right_choice` sets how often the right
    call is shown."""

    own_model: bool = False
    """Gives the model of `model.path` a warm start before its first night, as the embedded model always has one."""
    steps: Annotated[int, UnitName("steps")] = Field(300, ge=1)
    """Maximum steps of the warm start."""
    batch: Annotated[int, UnitName("demonstrations")] = Field(32, ge=1)
    """Demonstrations per step."""
    learning_rate: Annotated[float, UnitName("per step")] = Field(6e-3, gt=0)
    """Peak learning rate of the warm start."""
    warmup_steps: Annotated[int, UnitName("steps")] = Field(15, ge=0)
    """Steps in which the learning rate rises from 0."""
    demonstrations: Annotated[int, UnitName("demonstrations")] = Field(4000, ge=1)
    """Demonstrations generated in advance, to draw batches from."""
    right_choice: Annotated[float, UnitName("share")] = Field(0.6, ge=0, le=1)
    """Share of demonstrations with the operation that the question asks for; the others show another of its arity."""
    fail_first: Annotated[float, UnitName("share")] = Field(0.5, ge=0, le=1)
    """Share of demonstrations with a failing call and its repair."""
    stop_at: Annotated[float, UnitName("share")] = Field(0.5, gt=0, le=1)
    """Sampled success on validation tasks at which the warm start ends."""
    validate_every: Annotated[int, UnitName("steps")] = Field(60, ge=1)
    """Steps between validations."""
    validation_items: Annotated[int, UnitName("tasks")] = Field(128, ge=1)
    """Tasks per validation."""
    checkpoint_every: Annotated[int, UnitName("steps")] = Field(60, ge=1)
    """Steps between checkpoints, from which a stopped warm start resumes."""


class TrainingRecipe(FiniteRecord):
    steps: Annotated[int, UnitName("steps")] = Field(60, ge=0)
    """Training steps per cycle."""
    tasks_per_step: Annotated[int, UnitName("tasks")] = Field(16, ge=1)
    """Tasks per step; the rollouts of a task form a group."""
    rollouts_per_task: Annotated[int, UnitName("rollouts")] = Field(16, ge=2)
    """Rollouts sampled per task: 2G of GRPO-RoC."""
    keep: Annotated[int, UnitName("rollouts")] = Field(8, ge=2, validate_default=True)
    """Rollouts trained on per task: G of GRPO-RoC; equal to those sampled, nothing is selected."""
    refills: Annotated[int, UnitName("rounds")] = Field(1, ge=0)
    """Rounds that replace groups with equal rewards, which carry no signal, by fresh tasks."""
    screening: Annotated[int, UnitName("rollouts")] = Field(0, ge=0)
    """Rollouts after which a task gets the rest of its group only if right and wrong ones are likely enough, by earlier
    groups of its taskset and level; otherwise fresh tasks get them. 0 gives every task a whole group."""
    max_staleness: Annotated[int, UnitName("steps")] = Field(0, ge=0, le=64)
    """Maximum age in steps of the weights that drew a token. At 0, sampling and learning alternate; above, rollouts
    continue while the learner works, and receive new weights midway."""
    selector: Literal["roc", "roc_sorted", "uniform"] = "roc"
    """`roc` samples by inverse penalty as in the paper, `roc_sorted` truncates as in its release, `uniform` is GRPO
    with equal compute."""
    method: Literal["full", "lora", "qlora"] = "full"
    """`full` trains every weight, `lora` an adapter on frozen weights (2106.09685), on all linear layers but the head;
    `qlora` stores these layers in 4 bits (NF4, 2305.14314)."""
    lora_rank: Annotated[int, UnitName("rank")] = Field(16, ge=1, le=512)
    """Rank of the adapter's matrices; not with `full`."""
    lora_alpha: Annotated[float, UnitName("factor")] = Field(32.0, gt=0)
    """Scale of the adapter: alpha / rank; not with `full`."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Data type of layer computations. Trained weights, optimizer and log-probabilities are always float32; frozen
    weights beside an adapter are stored in this type, unless in 4 bits."""
    gradient_checkpointing: bool = False
    """Recomputes each layer's activations in the backward pass: less memory, a third more computing."""
    packing: bool = False
    """Packs rollouts without padding and without attention between them; otherwise they are padded."""
    micro_batch_tokens: Annotated[int, UnitName("tokens")] = Field(4096, ge=16)
    """Tokens per pass with packing; a longer rollout gets its own pass."""
    optimizer: Literal["adamw", "adamw_8bit", "muon"] = "adamw"
    """`adamw_8bit` stores the moments in 8 bits (bitsandbytes, 2110.02861), with one learner only. `muon`
    orthogonalises the updates of hidden matrices (2502.16982)."""
    offload: Literal["nothing", "activations", "moments", "both"] = "nothing"
    """State of a learner on a GPU that rests in main memory: inputs of checkpointed layers (`activations`), the
    optimizer's moments, of several learners with their weights and gradients (`moments`), or `both`."""
    objective: Annotated[str, AfterValidator(_known_objective)] = "dapo"
    """Loss to minimise: grpo, dapo, dr_grpo, gspo, cispo, dppo, max_rl or reinforce."""
    objectives: tuple[Annotated[str, AfterValidator(_own_objective)], ...] = ()
    """Objectives of single tasksets, each as "TASKSET=OBJECTIVE", with the clip bounds of that objective; a taskset's
    weight in an update is its share of the trained tokens."""
    learning_rate: Annotated[float, UnitName("per step")] = Field(4e-4, gt=0)
    """Peak learning rate of the training."""
    warmup_steps: Annotated[int, UnitName("steps")] = Field(5, ge=0)
    """Steps in which the learning rate rises from 0."""
    clip_low: Annotated[float, UnitName("ratio")] = Field(
        default_factory=lambda data: OBJECTIVES[data["objective"]].clip[0], gt=0, le=1
    )
    """Clip bound of the ratio below 1; by default the objective's. 1 is unbounded."""
    clip_high: Annotated[float, UnitName("ratio")] = Field(
        default_factory=lambda data: OBJECTIVES[data["objective"]].clip[1], gt=0
    )
    """Clip bound of the ratio above 1; by default the objective's."""
    minibatches: Annotated[int, UnitName("updates")] = Field(1, ge=1)
    """Weight updates per step, each on its part of the rollouts."""
    micro_batch: Annotated[int, UnitName("rollouts")] = Field(128, ge=1)
    """Rollouts per padded pass; fewer need less memory."""
    gradient_norm: Annotated[float, UnitName("norm")] = Field(1.0, gt=0)
    """Maximum gradient norm; a longer gradient is clipped."""
    temperature: Annotated[float, UnitName("temperature")] = Field(1.0, ge=0.01)
    """Temperature of training rollouts. vLLM raises a lower one to 0.01, or treats it as 0."""
    watch_every: Annotated[int, UnitName("steps")] = Field(10, ge=1)
    """Steps between validations on held-out tasks."""
    watch_items: Annotated[int, UnitName("tasks")] = Field(96, ge=1)
    """Held-out tasks per validation."""
    watch_drop: Annotated[float, UnitName("share")] = Field(0.15, gt=0, le=1)
    """Drop of held-out success below its best that ends training at the best checkpoint."""
    checkpoint_every: Annotated[int, UnitName("steps")] = Field(10, ge=1)
    """Steps between checkpoints, from which a stopped cycle resumes."""

    reward: Literal["passed", "score"] = "passed"
    """`passed` is 1 or 0; `score` gives a checklist with partial credit its share."""
    top_p: Annotated[float, UnitName("share")] = 1.0
    """Must be 1: training samples from the whole distribution."""
    top_k: Annotated[int, UnitName("tokens")] = 0
    """Must be 0, for the same reason."""
    min_p: Annotated[float, UnitName("share")] = 0.0
    """Must be 0, for the same reason."""
    mismatch: MismatchRecipe = MismatchRecipe()
    planning: PlanningRecipe = PlanningRecipe()
    self_distillation: SelfDistillationRecipe = SelfDistillationRecipe()
    branching: BranchingRecipe = BranchingRecipe()
    collapse: CollapseRecipe = CollapseRecipe()
    difficulty: Literal["uniform", "adaptive"] = "uniform"
    """`uniform` asks all levels equally often, `adaptive` prefers levels passed between .2 and .8 of the time in
    earlier steps; requires `max_staleness = 0`."""

    turns: TurnRecipe = TurnRecipe()
    stragglers: StragglerRecipe = StragglerRecipe()

    @property
    def adapts(self) -> bool:
        """True if an adapter is trained on frozen weights."""
        return self.method != "full"

    def offloads(self, part: Literal["activations", "moments"]) -> bool:
        """True if this state of a learner on a GPU rests in main memory."""
        return self.offload in (part, "both")

    def objective_of(self, taskset: str) -> str:
        """Returns the name of the objective by which a taskset is trained."""
        return dict(one.split("=") for one in self.objectives).get(taskset, self.objective)

    @property
    def all_objectives(self) -> frozenset[str]:
        """Names of the objectives of all tasksets."""
        return _named({"objective": self.objective, "objectives": self.objectives})

    def clip_of(self, objective: str) -> tuple[float, float]:
        """Returns the bounds of the ratio with this objective."""
        return (self.clip_low, self.clip_high) if objective == self.objective else OBJECTIVES[objective].clip

    def require_learners(self, learners: int) -> None:
        """Raises LearningError if the recipe does not support this number of learner processes."""
        if learners > 1 and self.optimizer == "adamw_8bit":
            raise LearningError(
                f"recipe.training.optimizer is adamw_8bit with {learners} learners: bitsandbytes cannot update "
                "weights that are split between learners",
                hint="set recipe.training.optimizer to adamw, or model.learners to 1",
            )

    def needs_routes(self, config: Mapping[str, Any], weights: Iterable[str]) -> bool:
        """True if the learner must choose its sampler's experts: it trains all weights of a mixture, and corrects no
        mismatch. `config` is the model's config.json, `weights` are its tensors' names."""
        if self.method != "full" or self.mismatch.rule != "none":
            return False
        return any(config.get(name) for name in EXPERTS) or any(".experts." in name for name in weights)

    @field_validator("top_p", "top_k", "min_p")
    @classmethod
    def _whole_distribution(cls, value: float, info: ValidationInfo) -> float:
        whole_distribution(str(info.field_name), value, 1.0 if info.field_name == "top_p" else 0.0)
        return value

    @field_validator("offload")
    @classmethod
    def _can_move(cls, value: str, info: ValidationInfo) -> str:
        if value in ("activations", "both") and not info.data.get("gradient_checkpointing"):
            raise ValueError(f"{value} moves the inputs of checkpointed layers: set gradient_checkpointing to true")
        if value in ("moments", "both") and info.data.get("optimizer") == "muon":
            raise ValueError(f"{value} moves moments one by one, and muon needs many together: set optimizer to adamw")
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
        for name in sorted(_named(info.data)):
            if why := mismatch_refusal(value, name, OBJECTIVES[name], info.data.get("minibatches", 1)):
                raise ValueError(why)
        return value

    @field_validator("objectives")
    @classmethod
    def _one_for_each(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = [one.partition("=")[0] for one in value]
        twice = next((name for name in names if names.count(name) > 1), "")
        if twice:
            raise ValueError(f"{twice} has two objectives: name one")
        return value

    @field_validator("self_distillation")
    @classmethod
    def _scored_by_itself(cls, value: SelfDistillationRecipe, info: ValidationInfo) -> SelfDistillationRecipe:
        planning = info.data.get("planning", PlanningRecipe()).credit
        objectives = _named(info.data)
        why = value.refusal(objectives, info.data.get("max_staleness", 0), planning)
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

    @model_validator(mode="after")
    def _can_screen(self) -> TrainingRecipe:
        if self.screening and not 2 <= self.screening < self.rollouts_per_task:
            raise ValueError(f"screening: use 0, or at least 2 and fewer than the {self.rollouts_per_task} of a group")
        if self.screening and (self.max_staleness or self.branching.where != "nowhere" or self.reward != "passed"):
            raise ValueError('screening: needs max_staleness = 0, branching.where = "nowhere" and reward = "passed"')
        return self

    @field_validator("difficulty")
    @classmethod
    def _after_the_steps_before(cls, value: str, info: ValidationInfo) -> str:
        if value == "adaptive" and info.data.get("max_staleness", 0):
            raise ValueError("adaptive needs max_staleness = 0: it uses the results of all earlier steps")
        return value

    @field_validator("turns")
    @classmethod
    def _grow_after_steps(cls, value: TurnRecipe, info: ValidationInfo) -> TurnRecipe:
        if value.first and info.data.get("max_staleness", 0):
            raise ValueError("first needs max_staleness = 0: a budget grows with the results of all earlier steps")
        return value


class EvaluationRecipe(FiniteRecord):
    sealed_items: Annotated[int, UnitName("questions")] = Field(512, ge=1)
    """Sealed questions for champion and candidate."""
    unsolvable_items: Annotated[int, UnitName("questions")] = Field(192, ge=1)
    """Unsolvable questions, for the candidate only: with 190 of them, no pass bounds hacks by 2 %."""
    temperature: Annotated[float, UnitName("temperature")] = Field(1.0, ge=0.01)
    """Temperature of the sampled answers, which decide; greedy answers are reported beside them."""


class Recipe(Record):
    tasksets: tuple[str, ...] = CALCULATORS
    """Tasksets of a cycle: names that `assay curriculum ls` lists, including the owner's; the policy's [data] decides
    which are trained on."""
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
        if self.proposer.proposals and self.training.screening:
            raise ValueError("a proposal earns by the pass rate of a whole group: set training.screening = 0")
        return self
