"""State of the machine: `resource_watch.py` decides when work pauses, `gpu_watch.py` reads GPUs, `usage.py` feeds the
TUI."""
