"""Words, sentences, characters and languages of a text, for the items of a checklist.

Nothing here decides an item. Start with `characters.py` for how words are compared, and `prose.py` for words and
sentences.
"""
