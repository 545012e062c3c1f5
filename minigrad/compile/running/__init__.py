"""Running: from a partition and its kernels to a program, its memory and its steps."""
