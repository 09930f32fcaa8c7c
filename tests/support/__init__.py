"""What tests share: small problems, exact arithmetic, commands in processes of their own, and the tables of
cases that also run as plain Python.
"""
