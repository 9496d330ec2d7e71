"""Where untrusted code runs: sandboxes, limits, sessions and the pool. Imports nothing else of this project."""
