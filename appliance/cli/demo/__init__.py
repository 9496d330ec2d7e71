"""`assay demo`: one night in miniature with real parts; and made-up nights for `assay tui --demo-data`.

Open `command.py` first (the demonstration), with `report.py` and `screen.py` for its end. `appliance.py`, `records.py`
and `sessions.py` invent records in a temporary folder; nothing in them was measured.
"""
