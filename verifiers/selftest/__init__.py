"""Self-test of the verifiers: known attacks, idle agents and honest controls.

Open `run.py` first. `cases.py` lists the cases and prints the attack catalogue, `report.py` is the result.
The canaries themselves lie beside each kind, in `verifiers/<kind>/canaries`.
"""
