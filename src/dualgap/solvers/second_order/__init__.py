"""Newton's method."""
