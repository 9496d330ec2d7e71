"""This package runs the worlds of environments: each in a sandbox of its own, asked by plain data."""
