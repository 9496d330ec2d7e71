"""Environment of a terminal: repairs, set-ups and longer jobs, judged by declared files in a fresh sandbox.

`environment.py` defines the tool, `world.py` runs in the sandbox, and `harbor` reads and writes Harbor task folders.
`repairs.py` makes small tasks; `pipelines.py`, `reconstructions.py` and `recoveries.py` make jobs of 13 to 34 commands.
"""
