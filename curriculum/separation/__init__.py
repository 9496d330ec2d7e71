"""Keeps what is trained on apart from what is judged by: sealed and held-out questions are never trained on."""
