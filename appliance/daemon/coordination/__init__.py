"""Assembles the daemon: `core.py` builds all services, `threads.py` gives workers their work, and makes tasks of
verified work before a night."""
