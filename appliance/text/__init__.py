"""Foreign text made safe to show or keep: terminal output, HTML, and the owner's redaction rules. Pure.

Open `printable.py` first. Nothing here reads files or decides what to show.
"""
