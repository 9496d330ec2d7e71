"""Nights: when one may begin, when it has to stop, and why. Pure but for `machine`, which looks at this machine."""
