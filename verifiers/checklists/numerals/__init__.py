"""Numbers in prose: digits, number words of several languages, units and signs.

`numbers.py` combines the others; open it first. Comparing numbers with facts is done in `checklists/facts.py`.
"""
