"""The screens, one module each: a `Pane` with its questions to the control API, and pure functions that turn answers
into text. Open `now.py` for a screen of its own shape, `jobs.py` for one with a table of records. `tui.views` lists
them."""
