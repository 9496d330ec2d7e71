"""Curriculum."""
