"""Reports over messy files of deliveries, with a data dictionary and an errata note.

`firms.py` draws clean data, `reports.py` computes the report from them and is the taskset, and `messy_files.py` writes
them to files by the dictionary's rules.
"""
