"""Gpu selftest."""
