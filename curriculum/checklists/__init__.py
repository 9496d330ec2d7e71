"""Long-form writing tasks: instructions with the checklist that decides if a text follows them.

`long_form.py` is the taskset, `instructions.py` composes its instructions from `constraints.py`, and `written.py` reads
checklists that a model wrote. Items are checked by `verifiers.checklists`, never here.
"""
