"""Our own programs in boxes of the broker, and the protocol for talking to them.

Open `box.py` first: `ToolBoxes` starts boxes, `ToolBox` talks to one. `in_sandbox.py` runs one function of `guest/` in
a sandbox. `own_time.py` is the time rule for watched processes; `conductor.py` is the checker's interface to
conductors.
"""
