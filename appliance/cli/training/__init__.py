"""`assay cycle`, `schedule`, `rollouts`, `train` and `warm-start`: nights by hand and their results.

Open `cycles.py` first; `train.py` starts a training in stages, `warm_start.py` makes its first data.
"""
