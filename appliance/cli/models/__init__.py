"""`assay model`, `assay evaluate`, `assay report` and `assay engine`: models, their decisions and results.

Each command has a row in `appliance.cli.main`. `look.py` reads, `judge.py` signs, `base_models.py` imports and exports,
`evaluate.py` measures, `engine.py` serves samples.
"""
