"""The child process that holds the model: it runs a cycle or the jobs, and writes through the core's ledger."""
