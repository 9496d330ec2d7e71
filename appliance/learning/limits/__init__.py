"""Limits of a training: collapse detection, early stopping, turn budget, straggler limit. Pure rules and state, saved
in checkpoints; nothing here stops a process."""
