"""Recipes: every number that decides a checkpoint, as settings.

Open `recipe` first; `stages` has the stages of a training. Imports no torch.
"""
