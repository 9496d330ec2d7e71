"""Promotion policy: gates, statistics, decisions, approvals and their signatures.

What lives here: `contract/` (records: evidence, findings, decisions, policy sections), `gates/` (one module per gate),
`statistics/` (tests and intervals), and signed statements: envelopes, key register, approvals, validations, edits.

What never does: input and output beyond reading a policy file, clocks (every time is an argument), databases, and any
import from the rest of the project.

Start with `decide.py` (findings to decision), then `gates/registry.py` and `policy.py` (the TOML file).
"""
