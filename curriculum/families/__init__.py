"""Task families, one file each. `curriculum.registry` names those that are in use."""
