"""Stochastic solvers of the primal problem."""
