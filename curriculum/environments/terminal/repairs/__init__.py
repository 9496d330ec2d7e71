"""Families of repairs and set-ups: what lies in the folder, what is asked, and what has to hold of the result."""
