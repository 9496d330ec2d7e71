"""Plug-ins: what other distributions add to the product's tables, through entry points.

Invariants: nothing of a distribution is imported unless the allow-list in force names it with its version and digest;
of an admitted one, only the bytes that its RECORD names are executed. A name from outside is `DISTRIBUTION/NAME` and
never that of a built-in row. A misfit is a PluginError, never a silent omission. Open `allowed.py` first.

- `installed.py`: reads an installed distribution and its digest, from metadata and hashes, without importing it.
- `allowed.py`: the allow-list of this process and its children, and the distributions that it admits.
- `importing.py`: imports modules of admitted distributions, each byte checked again.
- `table.py`: a table with built-in rows and those from outside.
"""
