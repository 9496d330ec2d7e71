"""Warm start and SFT stages: `stage` trains, `demonstrations` runs the calls to show.

Never samples from the model except to validate.
"""
