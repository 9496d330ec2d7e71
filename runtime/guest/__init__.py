"""Runs inside the sandbox: the standard library only, Python 3.11+. The host takes `wire` from here."""
