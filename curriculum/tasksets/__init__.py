"""Tasksets that need more than one calculator line, one file each, grouped by subject.

A file defines its item makers and a `TopicTaskset`; `curriculum.names` lists them. `statements.py`,
`prose.py` and `exact_arithmetic.py` are shared.
"""
