"""A terminal: small repairs and set-ups, judged by declared files in a fresh sandbox."""
