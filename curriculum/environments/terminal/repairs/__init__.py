"""Families of repairs and set-ups: initial files, instruction, and conditions on the result.

`repair.py` defines the format; `scripts.py` and `data.py` have the generators. The taskset is
`curriculum.tasksets.terminal_repairs`.
"""
