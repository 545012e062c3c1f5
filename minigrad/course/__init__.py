"""The course: what its notebooks are made of."""
