"""Selftest."""
