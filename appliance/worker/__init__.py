"""Worker process: holds the model, runs a cycle or jobs, and writes through the core's ledger.

`__main__` parses the command line and owns the exit codes; `cycle` runs the phases of one cycle; `forkserver` keeps
libraries loaded between workers. Subfolders: `setup` (context, progress, separation), `sft`, `training`, `evaluation`.
A worker never opens the ledger file and never decides on promotion: the core does both.
"""
