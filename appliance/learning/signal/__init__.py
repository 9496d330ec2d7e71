"""Training signal: rewards, groups, selection and corrections, and comparisons of models.

`grouping` turns judged rollouts into groups with advantages, `roc` selects, `corrections` weighs tokens, `comparison`
and `drift` measure candidates. Nothing here updates weights.
"""
