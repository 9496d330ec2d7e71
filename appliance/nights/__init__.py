"""Schedule of nights: when a night may begin, when it must stop, and why.

Open `decide.py` first: facts in, one action out. `settings.py` is `[schedule]` and `[report]`; `calendar.py` and
`cron.py` compute windows, `machine.py` measures and judges idleness. Everything but `machine.py` is pure;
`daemon.nights` carries the actions out.
"""
