"""Says of a taskset whether its checks hold: right answers pass, and an agent that does no work does not."""
