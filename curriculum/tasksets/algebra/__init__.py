"""Tasksets of algebra, one file each: equations, polynomials, functions, sequences and matrices."""
