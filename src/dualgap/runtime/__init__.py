"""What knows nothing of learning: errors, arrays, compiling, random numbers, threads, exact sums, files."""
