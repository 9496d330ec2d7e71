"""Training signal: rewards, groups, selection and corrections, and comparisons of models.

`grouping` turns judged rollouts into groups with advantages, `roc` selects, `corrections` weighs tokens and measures
drift, `comparison` compares models. Nothing here updates weights.
"""
