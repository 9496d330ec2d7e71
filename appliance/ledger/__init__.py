"""The ledger is the one store: every record is here before the next step acts on it."""
