"""Training: turns verified rollouts into a better checkpoint.

`training` has the trainers (start with `training/trainer.py`), `objectives` the losses, `signal` the rewards, groups
and advantages, `recipes` the settings of a cycle, and `limits` early stopping and budgets. `checkpoints` and `folders`
write models atomically. Nothing here samples, judges answers or reads the ledger: `appliance.worker` joins the parts.
"""
