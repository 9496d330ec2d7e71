"""Rendering: writes conversations as tokens and parses them; the layer below agent, inference and learning.

Open `renderer` first: it defines the interface. `chat` uses the library of chat formats, `seedling` is the built-in
format, `guarded` keeps outside text from becoming special tokens, `load` chooses a format for a model.
"""
