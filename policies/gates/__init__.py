"""The gates between a candidate and service: one module and one row in `registry` each."""
