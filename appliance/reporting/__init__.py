"""Reports about nights and promotions, for people: text, Markdown, JSON, one HTML page, pictures. Pure but for files.

Open `night_report.py` first: it gathers the figures that the `as_*` modules show. `drawing.py` has the charts and
chooses them. Nothing here reads the ledger or the control API.
"""
