"""Item types of a checklist: their fields, their description in words, and faults of their own definition.

Deciding an item is done in `checklists/items.py`, `structure.py` and `citations.py`. Start with `item_data.py`.
"""
