"""An owner's own problems: rows that were given, each with its check, as a taskset like any other."""
