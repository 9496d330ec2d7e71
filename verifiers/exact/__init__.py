"""Kind `exact`: text answers that must equal the expected text character by character.

Start with `verifier.py`. Mathematical equality belongs in `verifiers.answers`.
"""
