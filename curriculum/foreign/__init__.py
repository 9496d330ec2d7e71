"""Makes tasksets from other frameworks' environments, and decides which items a built-in check can verify.

`making.py` has the guest generate items; `given.py` reads an owner's tasks for an MCP server. Answers that only the
foreign program can score get `FOREIGN_SPEC` and are never trained on.
"""
