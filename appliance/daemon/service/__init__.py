"""The daemon's work: cycles, jobs, the owner's tasksets, gateway tokens, and the supervisor that runs workers on them.

Open `supervisor.py` (retries and parking) and `cycles.py` first; `decision.py` ends a cycle, `job_queue.py` admits
jobs, `readiness.py` says what prevents work from starting, `resource_watch.py` when it pauses.
"""
