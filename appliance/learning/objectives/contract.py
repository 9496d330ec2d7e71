"""Contract that every objective keeps, as a check on tensors small enough to follow."""

from __future__ import annotations

from appliance.learning.objectives.objective import Graded, Objective


def faults_of(objective: Objective) -> list[str]:
    """Returns what an objective does wrong: a masked token counts, rows affect each other, a better rollout earns no
    more, or a figure is unusable."""
    import torch

    logprobs = torch.tensor([[-1.0, -2.0, -0.5], [-0.3, -1.5, -2.5]], requires_grad=True)
    sampled, advantages = logprobs.detach() * 1.1, torch.tensor([[1.0, -1.0, 5.0], [0.5, 0.5, 0.5]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    whole = objective.losses(logprobs, sampled, advantages, mask, objective.clip)
    alone = objective.losses(logprobs[:1], sampled[:1], advantages[:1], mask[:1], objective.clip)
    (gradient,) = torch.autograd.grad(whole.losses.sum(), logprobs)
    better, worse = objective.advantages([Graded(1.0), Graded(0.0)])
    faults = {
        "a masked token has a loss or a gradient": bool(whole.losses[0, 2] or gradient[0, 2]),
        "a loss or a gradient is not finite": not bool(whole.losses.isfinite().all() and gradient.isfinite().all()),
        "a row's losses depend on other rows": not torch.allclose(whole.losses[:1], alone.losses),
        "its denominator is not positive": not objective.denominator(5, 2, 10) > 0,
        "a better rollout does not earn more": not better > worse,
    }
    return [fault for fault, found in faults.items() if found]
