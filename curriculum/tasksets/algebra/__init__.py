"""Tasksets whose answers are expressions or intervals: integrals and inequalities."""
