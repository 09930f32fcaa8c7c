"""Formats of files with rows."""
