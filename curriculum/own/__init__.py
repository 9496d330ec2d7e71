"""An owner's problems as tasksets: rows that were given, each with its check.

`columns.py` reads a row, `rows.py` defines it, `taskset.py` makes tasks of rows. Filters and
Harbor folders are in `harbor.py`. Nothing here runs a row's code on the host.
"""
