"""Fuzzing of the readers: changed files by the million, which must be read right or refused with an
InputError.
"""
