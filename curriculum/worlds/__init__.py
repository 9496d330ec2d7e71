"""Runs the worlds of environments, each in its own sandbox, called with plain data.

Open `world.py` first, the host's side; `guest.py` is the driver inside the sandbox. `tool_schema.py` checks a model's
arguments and foreign schemas. Environments are defined in `curriculum.environments`, never here.
"""
