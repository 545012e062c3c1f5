"""Where tensors live: one NumPy per device, and the table of kernels, operation × device."""

from ..arguments.public import public
from .dispatch_table import kernels
from .kernel_table import Kernels
from .registry import CPU, Device, as_device, available_devices, device, register_device, register_kernel
from .threads import num_threads, set_num_threads

__all__ = [
    "CPU", "Device", "Kernels", "as_device", "available_devices", "device", "kernels",
    "num_threads", "register_device", "register_kernel", "set_num_threads",
]


def _cuda(name: str) -> Device:
    from .cuda import CudaDevice

    return CudaDevice(name)


register_device("cuda", _cuda)
public(["register_device", "register_kernel", "set_num_threads"], globals())
