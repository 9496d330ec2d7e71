"""Records travel between the parts; each is written to the ledger before the next step acts on it.

All are frozen. Times are UTC in ISO 8601 and come in as arguments. Each is imported from the module that says what it
is about; this package imports none of them.
"""
