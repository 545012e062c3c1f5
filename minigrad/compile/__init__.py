"""Graph mode and the compiler: from a recorded graph to a fused program."""
