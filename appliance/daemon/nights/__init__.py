"""Runs the schedule: `runner.py` begins, holds and ends nights as `appliance.nights.decide` says.

`schedule_store.py` records them, `schedule.py` is the thread, `notices.py` and `night_notices.py` tell people.
"""
