"""`assay curriculum`: looks at tasksets, tries tasks, adds the owner's problems and certifies them.

Each command has a row in `appliance.cli.main`, and a module here. `catalog.py` decides which tasks a person may
see, `own_files.py` reads rows, `add.py` filters them. No command shows a sealed question.
"""
