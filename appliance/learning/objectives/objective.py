"""Interface of training objectives: advantages from rewards, per-token losses, and the denominator of their sum.

The denominator is computed over a whole minibatch, a row's losses from that row alone, so splitting into micro-batches
changes nothing. A selector (RoC) is not an objective: it chooses the rollouts beforehand.
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
    """Reward and turns of one kept rollout: an objective's input."""

    reward: float
    turns: int = 1
    """Turns of the policy model in the rollout."""


@dataclass(frozen=True)
class TokenLosses:
    """Token losses of a batch. All tensors are [B, T-1], 0 or False where the mask is off."""

    losses: Tensor
    """Token losses with gradient; their minibatch sum is divided by the denominator."""
    ratios: Tensor
    """Importance ratios, without gradient."""
    clipped: Tensor
    """Bool: tokens limited by a bound: gradient 0, or in CISPO less than their ratio."""


@dataclass(frozen=True)
class Credit:
    """Advantages of an attempt's tokens."""

    shared: float
    """Advantage of tokens before the branch point."""
    leaves: tuple[float, ...]
    """Advantage of later tokens, per rollout; of all tokens for a single one."""


Anchor = Literal["sampler", "either", "none"]


@dataclass(frozen=True)
class Objective:
    clip: tuple[float, float]
    """Default bounds of the ratio below and above 1; 1 below is unbounded."""
    divisor: Callable[[float, float, int], float]
    """Divisor of reward differences, from mean and spread of the kept rewards, and the rollout's turns."""
    losses: Callable[[Tensor, Tensor, Tensor, Tensor, tuple[float, float]], TokenLosses]
    """Losses from `logprobs` of the trained model (with gradient), `sampled` as recorded while sampling, `advantages`
    per token, `mask` (bool, the policy model's own tokens), all [B, T-1], and the clip."""
    denominator: Callable[[int, float, int], float]
    """Denominator of a minibatch, from its trained tokens, its answers (a rewritten conversation is several samples,
    each with its share), and the maximum tokens of a conversation."""
    by_answer: bool = False
    """True if a row's losses are divided by its length, so each row is an answer; a partial answer weighs its share."""
    anchor: Anchor = "either"
    """Permitted reference of the ratio: the sampler's log-probabilities only, because the bound limits the distance
    from the sampler; those or the trainer's own before the step; or no ratio."""

    def advantages(self, kept: Sequence[Graded]) -> tuple[float, ...]:
        """Returns the advantage of each rollout of a group without branches. Raises ValueError as `credit`."""
        return tuple(one.leaves[0] for one in self.credit([(each,) for each in kept]))

    def credit(self, attempts: Sequence[Sequence[Graded]]) -> tuple[Credit, ...]:
        """Returns the advantages of a group, with the rollouts of an attempt and its branches together.

        Each attempt is a tree: its rollouts are the leaves L, and V, their mean reward, is the value of the branch
        point. M is the mean of V over attempts. Shared tokens earn (V - M) / d, a leaf's own tokens (r - V) / d: only
        what its own turn changed. The two add up to (r - M) / d, which an attempt without branches earns throughout. d
        is the objective's divisor; its spread weighs each attempt's rewards equally.

        Each attempt counts once in M, not each leaf: branching depends on the attempt's course, so branched attempts
        would outvote others. r - V is the local advantage of TreeRL (2506.11902), V - M its global one, with M over
        attempts; ARPO (2507.19849) gives shared tokens the mean of the later advantages, also (V - M) / d. Ours: a
        leaf's own tokens do not get the global part again, which their prefix has.

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
    """Returns 1 as divisor of a group's advantages: each is reward - mean."""
    return 1.0


def standardised(mean: float, spread: float, turns: int) -> float:
    """Returns the rewards' population standard deviation as divisor of a group's advantages (GRPO, 2402.03300, section
    4.1.2)."""
    return spread


def _spread(differences: Sequence[Sequence[float]]) -> float:
    """Returns the root mean square of the rewards' differences from the mean, averaged per attempt; positive if any
    differs."""
    # Scaled by the largest first: the square of 1e-200 would be 0.
    largest = max(abs(one) for leaves in differences for one in leaves)
    squares = [math.fsum((one / largest) ** 2 for one in leaves) / len(leaves) for leaves in differences]
    return largest * math.sqrt(math.fsum(squares) / len(squares))


def token_ratios(logprobs: Tensor, sampled: Tensor, mask: Tensor) -> Tensor:
    """Returns the importance ratio p_trainer / p_sampler of each token; exactly 1, without gradient, where the mask is
    off."""
    # Masked before exp: a recorded 0 against a real log-probability could overflow, and inf * 0 is NaN.
    return (logprobs - sampled).masked_fill(~mask, 0.0).exp()


def trained_lengths(mask: Tensor) -> Tensor:
    """Counts the trained tokens of each row: [B, 1], at least 1."""
    return mask.sum(1, keepdim=True).clamp(min=1)


def clipped_losses(ratios: Tensor, advantages: Tensor, mask: Tensor, clip: tuple[float, float]) -> TokenLosses:
    """Returns the clipped policy loss of each token: -min(ratio * A, clip(ratio) * A), with the ratio clipped to [1 -
    low, 1 + high]."""
    low, high = clip
    bounded = ratios.clamp(1.0 - low, 1.0 + high)
    gain = (ratios * advantages).minimum(bounded * advantages).masked_fill(~mask, 0.0)
    held = (bounded != ratios) & (bounded * advantages < ratios * advantages) & mask
    return TokenLosses(-gain, ratios.detach().masked_fill(~mask, 0.0), held)


def all_tokens(tokens: int, answers: float, most: int) -> float:
    """Returns the denominator of a summed loss for equal token weights: the number of trained tokens."""
    return tokens


def all_answers(tokens: int, answers: float, most: int) -> float:
    """Returns the denominator of a summed loss whose terms are already divided by answer length: the answers."""
    return answers
