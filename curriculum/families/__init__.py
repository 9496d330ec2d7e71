"""The task families, one module each."""
