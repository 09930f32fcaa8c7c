"""The problem and its certificate: losses, kinds of bias, primal and dual values."""
