"""Reinforcement learning phase of a cycle.

Open `rl_loop` first: it samples, verifies, records and learns, step after step. `step_sampling` and `look_ahead`
produce rollouts, `proposer` lets the model propose tasks, `partial_rollouts` saves unfinished ones. Losses and
optimizers live in `appliance.learning`.
"""
