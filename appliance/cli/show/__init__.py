"""Output of commands: JSON, tables, fields, logs, and the JSON schemas.

Open `printing.py` first; everything shown passes through it. `outputs.py` maps commands to their JSON models.
"""
