"""Source files that are sent into a sandbox as text; no other module of this project imports them."""
