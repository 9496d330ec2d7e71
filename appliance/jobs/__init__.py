"""Jobs that people submit, and the bundles they get back.

Open `solve.py` (work on one job) or `bundle.py` (writing a bundle) first. `lifecycle.py` decides who answers a job and
when it ends; `reading.py`, `check.py` and `reverify.py` verify a bundle offline; `report.py` shows the result. The
queue itself is in `daemon.service.job_queue`; docs/bundle.md describes the format.
"""
