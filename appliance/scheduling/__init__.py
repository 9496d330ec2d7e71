"""Scheduling: decides which rollout runs on which engine, and when.

`scheduler` is pure and decides, `engine_pool` makes several engines one and applies the decisions, `lengths` forecasts
rollout lengths, `pushing` sends weights to all engines. Nothing here knows tasks or text.
"""
