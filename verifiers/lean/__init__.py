"""Proofs in Lean 4, checked against a trusted statement.

Open `verifier.py` first: its docstring states the protocol. This process plans and judges: `statement`, `submission`,
`reading/`, `prepared`, `steps`, `judging`. Boxes run `server.py`, which uses `running`, `headers`, `warm`, `native`,
`olean`, `objects`, `declarations` and `controls`. No submission's code runs in this process.
"""
