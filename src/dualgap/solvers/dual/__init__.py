"""Solvers of the dual problem, a coordinate or a few at a time."""
