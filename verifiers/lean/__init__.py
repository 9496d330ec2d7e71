"""Proofs in Lean 4, checked against a trusted statement."""
