"""Evaluates a model on open questions, for people: figures with intervals, and nothing that training reads."""
