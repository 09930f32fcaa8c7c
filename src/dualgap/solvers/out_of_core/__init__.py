"""Solvers for rows that are not all in memory."""
