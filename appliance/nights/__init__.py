"""Schedule of nights: when a night may begin, when it must stop, and why.

Open `decide.py` first: facts in, one action out. `settings.py` is `[schedule]`, `report_settings.py` is `[report]`;
`calendar.py` and `cron.py` compute windows, `idle.py` judges what `machine.py` measured. Everything but `machine.py` is
pure; `daemon.nights` carries the actions out.
"""
