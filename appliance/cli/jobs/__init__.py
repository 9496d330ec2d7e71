"""`assay submit`, `assay jobs`, `assay verify` and `assay bundle`: jobs from the question to a verified bundle.

Open `request.py` first (flags or TOML to a job), then `watch.py`. `validate.py` signs a check's meaning; `verify.py`
and `bundle.py` also work without an appliance.
"""
