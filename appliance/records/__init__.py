"""Records: the frozen data types that the ledger stores and the parts exchange.

All are frozen; times are UTC in ISO 8601 and come in as arguments. Import each from the module of its subject; this
package imports none of them. Start with `record.py` (the base class), `rollouts.py` and `cycles.py`. Nothing here reads
or writes: that is `appliance.ledger`.
"""
