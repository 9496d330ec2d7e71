"""Coordination."""
