"""Copies of a data folder: made while the daemon runs, held by digest, checked, and put back."""
