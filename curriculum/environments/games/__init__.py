"""Games with undisclosed rules, in the manner of ARC-AGI-3.

`environment.py` defines the tools, `generate.py` makes games, and `world.py` runs in the sandbox. The rules are the
verifier's (`verifiers.games`).
"""
