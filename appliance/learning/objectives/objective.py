"""An objective makes advantages of rewards, per-token losses of log-probabilities, and says what divides their sum.

The denominator is worked out over a whole minibatch, and a row's losses from that row alone: splitting a minibatch into
micro-batches changes nothing. A selector (RoC) is no objective: it chooses what comes here.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Graded:
    """Says what an objective needs to know of one kept rollout."""

    reward: float
    turns: int = 1
    """How often the policy model spoke: the steps of the rollout."""


@dataclass(frozen=True)
class TokenLosses:
    """Holds what a batch costs. All are [B, T-1], and 0 or False where the mask is off."""

    losses: Tensor
    """With gradient; their sum over the minibatch is divided by the denominator."""
    ratios: Tensor
    """Importance ratios, without gradient."""
    clipped: Tensor
    """Bool: tokens that a bound holds back: their gradient is 0, or in CISPO less than their ratio asks for."""


@dataclass(frozen=True)
class Credit:
    """Holds the advantages of an attempt's tokens."""

    shared: float
    """Of those that come before the place where it branched."""
    leaves: tuple[float, ...]
    """Of those that come after, for each of its rollouts; of all of them where there is one."""


Anchor = Literal["sampler", "either", "none"]


@dataclass(frozen=True)
class Objective:
    clip: tuple[float, float]
    """How far the ratio may go below and above 1 where the recipe does not say; 1 below is no bound."""
    divisor: Callable[[float, float, int], float]
    """What a difference of rewards is divided by, of the mean and the spread of what is kept of a group, and of the
    rollout's turns."""
    losses: Callable[[Tensor, Tensor, Tensor, Tensor, tuple[float, float]], TokenLosses]
    """Of `logprobs` of the model in training (with gradient), `sampled` as recorded when the tokens were drawn,
    `advantages` per token, `mask` (bool, the policy model's own tokens), all [B, T-1], and the clip."""
    denominator: Callable[[int, float, int], float]
    """Of a minibatch: its trained tokens, its answers (an answer whose conversation was written anew is several
    samples, each with its share of it), and the most tokens that a conversation may have."""
    by_answer: bool = False
    """Whether a row's losses are divided by its length, so that each row is an answer: one that is but a part of an
    answer weighs its share of it."""
    anchor: Anchor = "either"
    """What the ratio may be taken over: the sampler's log-probabilities alone, because its bound is about the distance
    from the sampler; those or the trainer's own of before the step; or there is no ratio."""

    def advantages(self, kept: Sequence[Graded]) -> tuple[float, ...]:
        """Of what is kept of a group without branches. Raises ValueError as `credit` does."""
        return tuple(one.leaves[0] for one in self.credit([(each,) for each in kept]))

    def credit(self, attempts: Sequence[Sequence[Graded]]) -> tuple[Credit, ...]:
        """Of what is kept of a group, the rollouts of an attempt and of what branched off it together.

        Each attempt has a tree: its rollouts are the leaves L, and V, the mean of their rewards, is the value of the
        place where they part. M is the mean of V over attempts. What all leaves share earns (V - M) / d, and what is a
        leaf's alone (r - V) / d: what its own turn changed, and nothing of what had been decided before. The two add up
        to (r - M) / d, which an attempt without branches earns throughout. d is the objective's divisor; in it, the
        spread is taken over rewards, of which each attempt's weigh as much as another's in all.

        Each attempt counts once in M, and not each of its leaves: where it branched depends on how it went, and those
        that branched would outvote the others. r - V is the local advantage of TreeRL (2506.11902), V - M its global
        one, with M over attempts; ARPO (2507.19849) gives shared tokens the mean of the advantages below, which is (V -
        M) / d as well. Ours: a leaf's own tokens are not given the global part again, which their prefix has.

        Raises ValueError when all rewards are equal, also for an attempt without rollouts.
        """
        if not attempts:
            return ()
        if not all(attempts):
            raise ValueError("an attempt without rollouts has no value")
        if len({leaf.reward for leaves in attempts for leaf in leaves}) == 1:
            raise ValueError("equal rewards have no advantages; the selector should have dropped the group")
        values = [statistics.mean(leaf.reward for leaf in leaves) for leaves in attempts]  # exact for equal rewards
        mean = math.fsum(values) / len(values)
        spread = _spread([[leaf.reward - mean for leaf in leaves] for leaves in attempts])
        made = []
        for leaves, value in zip(attempts, values, strict=True):
            divisors = [self.divisor(mean, spread, leaf.turns) for leaf in leaves]
            shared = (value - mean) / divisors[0]
            alone = zip(leaves, divisors, strict=True)
            own = tuple((leaf.reward - value) / divisor for leaf, divisor in alone) if len(leaves) > 1 else (shared,)
            made.append(Credit(shared, own))
        return tuple(made)


def centred(mean: float, spread: float, turns: int) -> float:
    """Divides by nothing: the advantage is r - mean."""
    return 1.0


def standardised(mean: float, spread: float, turns: int) -> float:
    """Divides by the population's standard deviation (GRPO, 2402.03300, section 4.1.2)."""
    return spread


def _spread(differences: Sequence[Sequence[float]]) -> float:
    """Returns the root of the mean over attempts of the mean square of their differences; above 0 where one is."""
    # Divided by the largest first: the square of a difference of 1e-200 would be 0.
    largest = max(abs(one) for leaves in differences for one in leaves)
    squares = [math.fsum((one / largest) ** 2 for one in leaves) / len(leaves) for leaves in differences]
    return largest * math.sqrt(math.fsum(squares) / len(squares))


def token_ratios(logprobs: Tensor, sampled: Tensor, mask: Tensor) -> Tensor:
    """Returns p_trainer / p_sampler for each token, and exactly 1, without gradient, where the mask is off."""
    # Masked before exp: a recorded 0 against a real log-probability could overflow, and inf * 0 is NaN.
    return (logprobs - sampled).masked_fill(~mask, 0.0).exp()


def trained_lengths(mask: Tensor) -> Tensor:
    """Counts the trained tokens of each row: [B, 1], at least 1."""
    return mask.sum(1, keepdim=True).clamp(min=1)


def clipped_losses(ratios: Tensor, advantages: Tensor, mask: Tensor, clip: tuple[float, float]) -> TokenLosses:
    """Returns -min(ratio * A, clip(ratio) * A) for each token, with the ratio clipped to [1 - low, 1 + high]."""
    low, high = clip
    bounded = ratios.clamp(1.0 - low, 1.0 + high)
    gain = (ratios * advantages).minimum(bounded * advantages).masked_fill(~mask, 0.0)
    held = (bounded != ratios) & (bounded * advantages < ratios * advantages) & mask
    return TokenLosses(-gain, ratios.detach().masked_fill(~mask, 0.0), held)


def all_tokens(tokens: int, answers: float, most: int) -> float:
    """Is the denominator under which every token of a minibatch weighs the same."""
    return tokens


def all_answers(tokens: int, answers: float, most: int) -> float:
    """Is the denominator of losses that each answer's length has divided already."""
    return answers
