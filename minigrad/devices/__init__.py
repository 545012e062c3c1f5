"""Where tensors live: one NumPy per device, and the table of kernels, operation × device."""

from ..core.arguments import public
from . import cuda  # registers the device `cuda`; CuPy is imported when it is first used
from .kernel_table import Kernels
from .registry import CPU, Device, as_device, available_devices, device, register_device, register_kernel
from .table import kernels
from .threads import num_threads, set_num_threads

__all__ = [
    "CPU", "Device", "Kernels", "as_device", "available_devices", "device", "kernels",
    "num_threads", "register_device", "register_kernel", "set_num_threads",
]

public(["register_device", "register_kernel", "set_num_threads"], globals())
