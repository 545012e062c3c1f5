"""Where tensors live: one NumPy per device, and the table of kernels, operation × device."""

from .registry import CPU, Device, as_device, available_devices, device, register_device

__all__ = ["CPU", "Device", "as_device", "available_devices", "device", "register_device"]
