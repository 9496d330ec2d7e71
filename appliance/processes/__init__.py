"""What concerns a process, whatever it does."""
