"""Prints the dispatch table, operation × device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..core.primitive import P
from ..support.table import as_html, as_table
from .registry import DEVICES, REGISTRATIONS, Device, as_device


class KernelTable(Mapping[str, dict[str, str]]):
    """What runs where: `table["tanh"]["cpu"]`.  It prints as a table, a row for each primitive."""

    def __init__(self, devices: list[Device]) -> None:
        self.devices = [device.name for device in devices]
        self.rows = {op.name: {d.name: _label(d, op.name) for d in devices} for op in P}

    def __getitem__(self, op: str) -> dict[str, str]:
        return self.rows[P[op].name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return as_table(*self._cells(), left=1 + len(self.devices))

    def _repr_html_(self) -> str:
        return as_html(*self._cells())

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        return ["operation", *self.devices], [[op, *row.values()] for op, row in self.rows.items()]


def _label(device: Device, op: str) -> str:
    kernel: Any = device.kernels.get(op)
    return "–" if kernel is None else label_of(kernel)


def label_of(kernel: Any) -> str:
    """A kernel's name and where it comes from: `numpy.tanh`, `sum` of minigrad, `my_tanh *` registered by the user.

    >>> table = as_device("cpu").kernels
    >>> label_of(table["tanh"]), label_of(table["sum"])
    ('numpy.tanh', 'sum')
    """
    name = getattr(kernel, "__name__", type(kernel).__name__)
    if is_registered(kernel):
        return f"{name} *"
    library = (getattr(kernel, "__module__", None) or type(kernel).__module__).partition(".")[0]
    return name if library == "minigrad" else f"{library}.{name}"


def is_registered(kernel: Any) -> bool:
    """Whether a user registered a kernel."""
    return any(registration.put_in(kernel) for registration in REGISTRATIONS)


def kernels(*devices: Any) -> KernelTable:
    """The dispatch table of these devices, or of all that are in use.

    Names with a library are the library's functions.  Those without are methods of `Kernels`
    (`devices/kernel_table.py`).  A star marks kernels that were registered by `register_kernel`.

    >>> kernels("cpu")["tanh"]
    {'cpu': 'numpy.tanh'}
    >>> print(kernels("cpu"))
    operation            cpu
    ...
    tanh                 numpy.tanh
    ...
    """
    return KernelTable([as_device(d) for d in devices] or list(DEVICES.values()))
