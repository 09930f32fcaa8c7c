"""Vishwanathan (2015), a lecture: implicit updates, dual cached loops and block minimisation, the bias."""
