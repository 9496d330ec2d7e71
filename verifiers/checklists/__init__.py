"""Kind `checklist`: texts checked against a list of items, hard ones by code, soft ones by a model judge.

`spec.py` has the spec, `hard.py` decides the hard items, `verifier.py` adds the judge. `item_types.py` defines the
items, `items.py` and `structure.py` decide them; `words/` and `numerals/` read the text. Open `hard.py` first.

A model's opinion never makes a text pass, and nothing here executes a submission.
"""
