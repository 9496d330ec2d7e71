"""Promotion of a candidate: evidence from evaluations, and the alias moves that follow a decision.

Pure functions over records; the judging itself is in `policies`. Open `evidence.py`.
"""
