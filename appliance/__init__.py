"""The machine itself: agent, inference, learning, ledger, jobs, daemon, API and command line."""
