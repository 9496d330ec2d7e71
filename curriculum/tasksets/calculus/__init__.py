"""Tasksets of calculus, one file each: derivatives, integrals, limits, series and optimization."""
