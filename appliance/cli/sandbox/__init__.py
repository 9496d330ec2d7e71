"""`assay sandbox` and `assay cluster`: run code under the product's isolation, and inspect or test it.

Each command is beside its work: `run.py` runs once, `shell.py` with `repl_*` and `blocks.py` interactively,
`selftest.py` tests and measures, `broker.py` asks the running broker, `cluster.py` adds machines.
"""
