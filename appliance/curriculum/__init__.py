"""Audits of the curriculum from recorded data: separation of trained and held-out questions, and verdicts under new
verifiers.

Open `separation_audit.py` or `reverify.py` first; `kept_files.py` stores per cycle what the audits need, and
`own_tasksets.py` reads the owner's tasksets. Tasks themselves come from the top-level `curriculum` package.
"""
