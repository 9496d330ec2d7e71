r"""Losses and gradients beside those of TRL, on 200 random batches in fp64.

    python -m pip install --target FOLDER/site-packages --no-deps trl==1.16.0 \
        accelerate datasets dill multiprocess pandas pyarrow xxhash
    PYTHONPATH=FOLDER/site-packages python -m benchmarks.trl_losses [--record]

(The folder has to be called `site-packages`: dill, which datasets hashes with, copies what lies elsewhere.)

It calls `GRPOTrainer._compute_loss` of the installed TRL with log-probabilities that are given, and compares every loss
that both have. `--record` writes what TRL said to tests/fixtures/trl_losses.json, against which the suite holds ours;
TRL itself is no dependency of it (`docs/decisions.md` says why). Ends with status 1 where a difference is above 1e-10.

Where both differ on purpose, so that it is not compared:

- Advantages. TRL divides by the sample's standard deviation (n - 1) plus 1e-4; GRPO's formula (2402.03300) has the
  deviation of the group itself, and no constant: a group of equal rewards is dropped before.
- TRL has no DPPO, no MaxRL, no length normalisation; we have no bnpo (dapo within one micro-batch), luspo, sapo, vespo.
- TRL's cispo takes its bound as the weight itself, ours as the distance above 1: 5.0 there is 4.0 here.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from trl.trainer.grpo_trainer import GRPOTrainer

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "appliance" / "learning"))

from loss_cases import MOST, VARIANTS, LossCase, loss_cases, ours  # noqa: E402

RECORDED = ROOT / "tests" / "fixtures" / "trl_losses.json"
CASES = 200
BOUND = 1e-10
SETTINGS: dict[str, dict[str, Any]] = {
    "grpo": {"loss_type": "grpo", "epsilon_low": 0.2, "epsilon_high": 0.2},
    "dapo": {"loss_type": "dapo", "epsilon_low": 0.2, "epsilon_high": 0.28},
    "dr_grpo": {"loss_type": "dr_grpo", "epsilon_low": 0.2, "epsilon_high": 0.2},
    "gspo": {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon_low": 3e-4, "epsilon_high": 4e-4},
    "cispo": {"loss_type": "cispo", "epsilon_low": 0.2, "epsilon_high": 5.0},
}


def trainer(settings: dict[str, Any], corrected: bool) -> Any:
    """What `_compute_loss` asks of its trainer, beside the log-probabilities."""
    return SimpleNamespace(
        **{"importance_sampling_level": "token", **settings},
        accelerator=SimpleNamespace(
            num_processes=1, gather=lambda one: one, reduce=lambda one, reduction: one, sync_gradients=True
        ),
        args=SimpleNamespace(delta=None, use_bias_correction_kl=False, steps_per_generation=1),
        model=SimpleNamespace(training=False),
        aux_loss_enabled=False,
        beta=0.0,
        current_gradient_accumulation_steps=1,
        max_completion_length=MOST,
        off_policy_mask_threshold=None,
        top_entropy_quantile=1.0,
        use_vllm=corrected,
        vllm_importance_sampling_correction=corrected,
        _entropy_bonus_enabled=False,
        _metrics={"eval": defaultdict(list), "train": defaultdict(list)},
    )


def theirs(variant: str, case: LossCase) -> tuple[float, float]:
    name, mismatch = VARIANTS[variant]
    logprobs = case.logprobs.clone().requires_grad_()
    made = trainer(SETTINGS[name], mismatch.rule != "none")
    made._get_per_token_logps_and_entropies = lambda *_, **__: (logprobs, torch.zeros_like(logprobs), None)
    mask = case.mask.to(torch.float64)
    inputs = {
        "prompt_ids": torch.zeros(len(mask), 1, dtype=torch.int64),
        "prompt_mask": torch.ones(len(mask), 1, dtype=torch.int64),
        "completion_ids": torch.zeros(mask.shape, dtype=torch.int64),
        "completion_mask": mask,
        "advantages": case.rows,
        "num_items_in_batch": mask.sum(),
    }
    if mismatch.rule == "none":
        inputs["old_per_token_logps"] = case.sampled
    else:  # as `_generate_and_score_completions` makes the weights of token_truncate and token_mask
        weights = ((case.logprobs - case.sampled) * mask).exp()
        outside = (weights < mismatch.low) | (weights > mismatch.high)
        masked = weights.masked_fill(outside, 0.0)
        inputs["importance_sampling_ratio"] = (
            weights.clamp(max=mismatch.most) if mismatch.rule == "truncate" else masked
        )
    loss = GRPOTrainer._compute_loss(made, made.model, inputs)
    (gradient,) = torch.autograd.grad(loss, logprobs)
    return loss.item(), (gradient * case.weights).sum().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    cases = list(loss_cases(CASES))
    found = {variant: [theirs(variant, case) for case in cases] for variant in VARIANTS}
    worst = 0.0
    for variant, results in found.items():
        pairs = [(ours(variant, case), result) for case, result in zip(cases, results, strict=True)]
        apart = [max(abs(mine[part] - other[part]) for mine, other in pairs) for part in (0, 1)]
        print(f"{variant}: loss {apart[0]:.1e}, gradient {apart[1]:.1e} apart at most")
        worst = max(worst, *apart)
    if arguments.record:
        rounded = {name: [[round(part, 13) for part in one] for one in results] for name, results in found.items()}
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(results)}" for name, results in rounded.items())
        RECORDED.write_text(f'{{"trl": "{version("trl")}", "losses": {{\n{lines}\n}}}}\n')
    print(f"TRL {version('trl')}, {len(cases)} batches: {worst:.1e} apart at most (bound {BOUND:g})")
    sys.exit(worst > BOUND)


if __name__ == "__main__":
    main()
