"""Runs the schedule: `runner.py` begins, holds and ends nights as `appliance.nights.decide` says.

`schedule_store.py` records them, `notices.py` tells people.
"""
