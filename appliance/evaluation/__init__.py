"""Evaluates a model on open questions, for people: figures with intervals, and nothing that training reads.

Open `plan.py` first (questions, seeds, repeats, and results, so that a run can resume), then `run.py`. `figures.py`
computes pass@k, `page.py` renders it.
"""
