"""Output of commands: JSON, tables, fields, logs, and the JSON schemas.

Open `printing.py` first; everything shown passes through it. `schema.py` reads the JSON models from the commands.
"""
