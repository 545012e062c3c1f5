"""Users' kernels, and the patterns of operations that they replace."""
