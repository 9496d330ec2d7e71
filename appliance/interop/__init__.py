"""Adapters that offer parts of the appliance to other programs; nothing in the appliance imports them."""
