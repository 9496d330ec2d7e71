"""Import and export of Harbor task folders (harborframework.com/docs/tasks).

`folder.py` reads and writes a folder, `dockerfile.py` reads its image. Nothing of a folder runs on the host. `judge.py`
is copied into exported folders.
"""
