"""Panagiotakopoulos and Tsampouka (2013): SGD-r, SGD-s and SGD-m against Pegasos and linear SVMs."""
