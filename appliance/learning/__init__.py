"""This package makes a better checkpoint of verified rollouts: GRPO-RoC, objectives, checkpoints, evaluation."""
