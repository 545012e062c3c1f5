"""Makes `minigrad` a namespace of the Python array API standard: constants, version and capabilities."""

from __future__ import annotations

import math
import sys
from typing import Any

from ..core import dtypes
from ..core.dtypes import DType
from ..core.tensor import Tensor, default_device, method
from ..devices import as_device, available_devices
from ..support.errors import ConversionError

__all__ = ["__array_api_version__", "__array_namespace_info__", "e", "inf", "nan", "newaxis", "pi"]

e, pi, inf, nan = math.e, math.pi, math.inf, math.nan
newaxis = None
__array_api_version__ = "2024.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


@method
def __array_namespace__(x: Tensor, api_version: str | None = None) -> Any:
    """The namespace whose functions work on this tensor: `minigrad` itself.

    >>> mg.ones(2).__array_namespace__() is mg
    True
    """
    if api_version not in (None, *VERSIONS):
        raise ConversionError(f"version {api_version!r} of the array API is not supported", expect=", ".join(VERSIONS))
    return sys.modules[__name__.partition(".")[0]]


class NamespaceInfo:
    """The information of `mg.__array_namespace_info__()`, for programs that work with any array library."""

    def capabilities(self) -> dict[str, Any]:
        """The optional features of the standard, and whether they are supported.

        >>> mg.__array_namespace_info__().capabilities()["boolean indexing"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device of new tensors if none is given.

        >>> mg.__array_namespace_info__().default_device()
        cpu
        """
        return default_device()

    def devices(self) -> list[Any]:
        """The available devices.

        >>> "cpu" in [str(d) for d in mg.__array_namespace_info__().devices()]
        True
        """
        return [as_device(name) for name in available_devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes of Python numbers and indices.

        >>> mg.__array_namespace_info__().default_dtypes()["real floating"]
        dtype('float32')
        """
        as_device(device)
        return {
            "real floating": dtypes.default_float,
            "integral": dtypes.default_int,
            "indexing": dtypes.default_int,
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The standard's dtypes by name: all, or those of one kind.  (float16 is not in the standard.)

        >>> list(mg.__array_namespace_info__().dtypes(kind="signed integer"))
        ['int8', 'int16', 'int32', 'int64']
        """
        as_device(device)
        standard = {name: d for name, d in dtypes.ALL.items() if d is not dtypes.float16}
        return {name: d for name, d in standard.items() if kind is None or dtypes.isdtype(d, kind)}


def __array_namespace_info__() -> NamespaceInfo:
    """Information for programs that work with any array library.

    >>> sorted(name for name in dir(mg.__array_namespace_info__()) if not name.startswith("_"))
    ['capabilities', 'default_device', 'default_dtypes', 'devices', 'dtypes']
    """
    return NamespaceInfo()
