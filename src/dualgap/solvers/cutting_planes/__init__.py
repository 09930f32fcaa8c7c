"""Cutting plane methods."""
