"""Rows: how they are stored, read, and opened for training."""
