"""Zhang (2004): stochastic gradient descent on Reuters-21578, early stopping and averaging."""
