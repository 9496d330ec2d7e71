"""Recipes: every number that decides a checkpoint, as settings.

Open `recipe` first; `loss` has the loss corrections and `stages` the stages of a training. Imports no torch.
"""
