"""Cheap solvers: they propose answers from a question and its spec, in the text worker's box.

A proposal decides nothing: it goes to the spec's verifier like any other submission. `in_worker.py` is the entry point;
`arithmetic`, `numbers`, `roots`, `whole_numbers` and `claims` are the ways that the kinds list as `proposers`.
"""
