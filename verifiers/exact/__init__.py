"""Texts that have to be the expected one, character by character."""
