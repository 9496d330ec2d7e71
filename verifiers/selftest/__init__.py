"""Self-test of the verifiers: known attacks, idle agents and honest controls.

Open `run.py` first. `cases.py` lists the cases, `report.py` is the result, `catalogue.py` prints the attack catalogue.
The canaries themselves lie beside each kind, in `verifiers/<kind>/canaries`.
"""
