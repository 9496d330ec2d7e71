"""Certifies tasksets: correct answers pass, and agents that do no work fail.

Open `certify.py` first; `certificate.py` has the report, `worlds.py` the tests of environments. `certified.json` lists
the certified version and digest of each built-in taskset. Nothing here trains or calls a model.
"""
