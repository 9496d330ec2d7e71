"""`assay check`: verifies single submissions or files of pairs, without a daemon.

Open `work.py` first: it runs one command. `commands.py` builds a command for each kind of check, `options.py` reads
specs, `pairs.py` and `results.py` the files, `target.py` chooses the isolation, `show.py` prints.
"""
