"""`assay serve`: the core process, its worker and the control API."""
