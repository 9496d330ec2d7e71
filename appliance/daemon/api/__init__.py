"""The control API: `appliance.client.api_client` declares the endpoints, `handlers.py` answers them by name.

Open `handlers.py` first. `serve.py` is `assay serve`, `app.py` assembles the server, `requests.py` reads requests by
the table and describes it, `event_stream.py` is the only streaming endpoint, `metrics.py` serves Prometheus.
"""
