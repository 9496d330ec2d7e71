"""Bug reports: an archive with the facts that a maintainer needs, without secrets.

`collect.py` gathers and writes the parts; `redaction.py` removes secrets.
"""
