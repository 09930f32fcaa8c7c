"""Rows: how they are stored, where they come from, and how a file becomes one of them."""
