"""Texts that may be an answer, from what a question and its spec say themselves: cheap solvers, in the deciders' box.

A proposal decides nothing. Whoever gets one gives it to the spec's verifier like any other submission.
"""
