"""What commands print with `--json` where that is no record of its own: one model for each document.

What always holds: fields are only added. A module here is imported when its document is printed or described.
"""
