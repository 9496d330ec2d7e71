"""The terminal program: a client of the control API and of nothing else.

- `app.py`: the program, its keys and commands. Open this file first.
- `views.py`: the table of screens. A new screen is one row here and one module in `screens/`.
- `screens/`: one module per screen. `widgets/`: parts that screens share.
- `reader.py`: the thread that reads the control API. `ordered_keys.py`: the order of key presses.
- `web.py`: the same program in a browser on this machine.

Nothing here reads the data folder or decides anything.
"""
