"""Joint problems of K classes: one score a class, one loss of all K scores a row, one certificate.

Nothing here is imported before a joint loss is asked for.
"""
