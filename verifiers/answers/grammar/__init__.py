"""Parser for mathematical answers, in plain notation and LaTeX. Untrusted text is never evaluated as code.

Text becomes a tree of frozen nodes or a `GrammarError`: it is read whole or refused. Sizes are capped before anything
is computed. `tokens.py` splits the text, `reader.py` parses expressions, `nodes.py` and `values.py` define the results,
and `reading/` has one module per construct. Open `reader.py` first. Comparing values is the job of the package above.
"""
