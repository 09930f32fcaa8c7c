"""Solvers of joint problems of K classes."""
