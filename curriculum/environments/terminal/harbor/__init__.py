"""Import and export of Harbor task folders (harborframework.com/docs/tasks).

`folder.py` reads a folder, `dockerfile.py` its image, `export.py` writes one. Nothing of a folder runs on the host.
`judge.py` is copied into exported folders.
"""
