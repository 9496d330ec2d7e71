"""Offers parts of the appliance to other programs, by the protocols that those have. Nothing here imports them."""
