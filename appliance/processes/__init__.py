"""What can be said of a process from outside of it."""
