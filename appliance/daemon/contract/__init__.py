"""Errors and events shared by all parts of the daemon."""
