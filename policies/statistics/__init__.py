"""The arithmetic that gates rest on: intervals, tests, odds over several nights."""
