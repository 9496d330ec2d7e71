"""Kind `predicate`: values that must make a condition true; no known answer is needed.

Start with `verifier.py`. Parsing and exact arithmetic come from `verifiers.answers`.
"""
