"""Kind `game`: grid games with hidden rules, scored by the number of actions a player needed.

`rules.py` has the game itself, shared by the environment and the verifier; open it first. `verifier.py` replays a play.
"""
