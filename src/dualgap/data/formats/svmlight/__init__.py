"""Svmlight / LIBSVM text, in and out."""
