"""Commands of the appliance itself: `assay serve`, `broker`, `status`, `stop`, `config`, `backup`, `gateway`, `prune`,
`tui`.

Open `commands.py` first. `backup.py` works without the daemon; `gateway.py` manages tokens and kept sessions.
"""
