"""Instructions with the checklist that decides whether a text follows them."""
