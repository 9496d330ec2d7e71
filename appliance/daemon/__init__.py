"""The daemon behind `assay serve`: the process that owns a data folder, its workers and the control API.

Open `api/serve.py` (the process), then `coordination/core.py` (the services) and `coordination/threads.py` (the worker
lanes). `service/` has the work itself (cycles, jobs, supervisor), `governance/` everything signed, `nights/` the
schedule, `processes/` the child processes, `views/` read models, `api/` the routes, `contract.py` errors and events.

Models are never loaded here: workers do that (`appliance.worker`). What may be promoted is decided in `policies`.
"""
