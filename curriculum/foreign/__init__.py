"""This package makes tasksets of what somebody else's environments ask, and says which of them our checks can
decide.
"""
