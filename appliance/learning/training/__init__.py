"""Trainers: one step of reinforcement learning, distillation or SFT, in this process or in rank processes.

`trainer` and `sft` compute steps, `updates` fits them into memory, `rank` is the process that trains and
`ranked_trainer` has its clients. Rollouts arrive recorded; nothing here samples.
"""
