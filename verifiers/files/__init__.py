"""Files that a task asked for: judged by what they hold, and by what they do in a fresh sandbox."""
