"""Environment of a terminal: small repairs and set-ups, judged by declared files in a fresh sandbox.

`environment.py` defines the tool, `world.py` runs in the sandbox, `repairs.py` makes tasks, and `harbor` reads and
writes Harbor task folders.
"""
