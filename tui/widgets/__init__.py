"""Widgets shared by the screens: text, tables, dialogs and the command line.

Open `view.py` first (the contract of a screen), then `table_pane.py`. `text.py` is the only way from foreign text to
the terminal.
"""
