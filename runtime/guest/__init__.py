"""Code that runs inside the sandbox: standard library only, Python 3.11+.

Nothing here imports the host side; the host imports only `wire`, `frames` and the filters. Memory counts, so `typing`,
`enum` and `json` are avoided. Start with `worker.py`, the first process, then `supervisor.py`.
"""
