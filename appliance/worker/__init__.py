"""This package is the process that holds the model: it runs a cycle or jobs, and writes through the core's ledger."""
