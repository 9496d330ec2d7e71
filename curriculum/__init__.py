"""What to work on: task families, their levels, and the partition of seeds that keeps the sealed set sealed."""
