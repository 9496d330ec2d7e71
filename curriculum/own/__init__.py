"""An owner's problems as tasksets: rows that were given, each with its check.

`columns.py` reads a row, `rows.py` defines it, `taskset.py` makes tasks of rows. Filters are in `doors.py`, Harbor
folders in `harbor.py`. Nothing here runs a row's code on the host.
"""
