"""Assembles the daemon: `core.py` builds all services, `dispatcher.py` gives workers their work, `collecting.py` makes
tasks of verified work before a night."""
