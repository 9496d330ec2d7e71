"""Models of what commands print with `--json` where no record serves: one model per document.

Invariants: fields are only added. A module here is imported only when its document is printed or described.
"""
