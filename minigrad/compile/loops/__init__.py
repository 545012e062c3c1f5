"""The loop language, in which kernels are written before they are printed as code."""
