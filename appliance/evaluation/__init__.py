"""Evaluates a model on open questions, for people: figures with intervals, and nothing that training reads.

Open `plan.py` first (questions, seeds, repeats), then `run.py`. `answering.py` adapts engines and APIs, `attempts.py`
keeps results so that a run can resume, `figures.py` computes pass@k, `page.py` renders it.
"""
