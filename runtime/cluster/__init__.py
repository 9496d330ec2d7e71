"""More than one host: sessions go where there is room and stay there; a lost host ends its own sessions only."""
