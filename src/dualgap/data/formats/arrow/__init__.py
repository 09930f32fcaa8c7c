"""Stores: Arrow files of sparse rows."""
