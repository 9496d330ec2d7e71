"""This package reads mathematics with a parser of our own: nothing a model wrote is ever evaluated as code.

Text becomes a tree of frozen nodes or a `GrammarError`; there is no third way, and no partial reading: a text is read
whole or refused. Sizes are capped before anything is computed.
"""
