"""The audit log on disk, and the machine's own keys."""
