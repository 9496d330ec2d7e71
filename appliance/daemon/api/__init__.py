"""The control API: one module of routes per subject, `requests.py` for parsing, `app.py` to assemble them.

Open `app.py` first. `openapi.py` describes the routes, `event_stream.py` is the only streaming one, `metrics.py` serves
Prometheus. Handlers only translate: the work is in `daemon.service`, `daemon.governance` and `daemon.views`.
"""
