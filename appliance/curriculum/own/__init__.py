"""The owner's tasksets in a data folder: `files.py` has their paths, `tasksets.py` reads them."""
