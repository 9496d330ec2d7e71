"""Bug reports: an archive with the facts that a maintainer needs, without secrets.

`collect.py` gathers the parts, removes secrets and writes the archive.
"""
