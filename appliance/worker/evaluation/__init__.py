"""Evaluation of candidate and champion, and the measurements that gates ask for.

`evaluate` runs models on sealed questions, `measurements` collects the rest, the probes test egress and refusals, and
`attest` signs where a checkpoint comes from. Nothing here decides on promotion.
"""
