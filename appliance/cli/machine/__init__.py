"""Commands about this machine: `assay doctor`, `plan`, `selftest` and `bug-report`. None needs the daemon.

Open `doctor.py` first: it lists all checks; `doctor_gpus.py`, `doctor_cluster.py` and `doctor_isolation.py` have those
of their subject. `plan.py` only computes.
"""
