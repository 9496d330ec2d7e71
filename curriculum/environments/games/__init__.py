"""Games with undisclosed rules, in the manner of ARC-AGI-3.

`environment.py` defines the tools, `generate.py` makes games from `maps.py` and `search.py`, and `world.py` runs in the
sandbox. The rules are the verifier's (`verifiers.games`).
"""
