"""From verified rollouts to a better checkpoint: GRPO-RoC, objectives, checkpoints, evaluation."""
