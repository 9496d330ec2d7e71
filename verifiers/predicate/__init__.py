"""Values that have to make a condition true."""
