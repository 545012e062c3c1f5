"""Code generation: from a kernel to C, LLVM, CUDA or NumPy, and to machine code."""
