"""`assay audit`: reads, checks, exports and renews the audit log, without the daemon.

Open `commands.py` first; `read.py` verifies, `renew.py` begins or accepts a log.
"""
