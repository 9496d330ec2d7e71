"""Checks whether a night can begin: model, sandbox backend and tasksets. Nothing is changed and nothing heavy is
loaded.

Open `model.py` first. `sandbox.py` asks the broker or the backend, and compares names of tasksets. `assay doctor`, the
daemon and the workers call these checks.
"""
