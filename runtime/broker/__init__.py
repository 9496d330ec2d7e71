"""The one process with the right to start sandboxes, and how others ask it."""
