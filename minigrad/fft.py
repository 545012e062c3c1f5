"""Fourier transforms: `mg.fft`.  The transforms themselves are missing, because there are no complex numbers yet."""

from .ops.frequencies import fftfreq, fftshift, ifftshift, rfftfreq

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]
