"""What may happen: gates, statistics, decisions and approvals. Pure, and imports nothing else of this project."""
