"""Kind `files`: checks declared files by content, mode, and behaviour in a fresh sandbox.

Nothing of the environment in which the files were made takes part. Start with `verifier.py`; `spec.py` also
parses the untrusted submission.
"""
