"""Reliability under hard conditions: kills, damaged files, full disks, random problems re-proved in exact
arithmetic, many processes at once. ``make torture`` runs all of it; RELIABILITY.md has the result.
"""
