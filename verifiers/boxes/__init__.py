"""Programs of our own that work in boxes of the broker, and how they are asked."""
