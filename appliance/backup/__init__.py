"""Backups of a data folder: created while the daemon runs, stored by digest, verified, and restored.

Open `store.py` for the format, then `create.py` and `restore.py`. Sessions of the gateway are in no backup.
"""
