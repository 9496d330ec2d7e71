"""Programs against tests, in a sandbox that holds no expected value."""
