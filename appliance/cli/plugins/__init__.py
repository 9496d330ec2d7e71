"""`assay plugins`: lists the distributions that add to the product, and certifies them.

Open `commands.py` first; `checks.py` has one function for each seam.
"""
