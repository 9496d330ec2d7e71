"""Contest tasksets: a structure, a query on it and a twist, with limits that only the right complexity meets.

`composing.py` makes an item of a family; the other modules have the families of one structure each.
"""
