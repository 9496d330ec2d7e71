"""Nights."""
