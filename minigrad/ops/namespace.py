"""What makes `minigrad` a namespace of the Python array API standard: constants, its version, and what it can do."""

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
        raise ConversionError(f"there is no version {api_version!r} of the array API here", expect=", ".join(VERSIONS))
    return sys.modules[__name__.partition(".")[0]]


class NamespaceInfo:
    """What a program that works with any array library may ask: `mg.__array_namespace_info__()`."""

    def capabilities(self) -> dict[str, Any]:
        """What is optional in the standard, and whether it is here.

        >>> mg.__array_namespace_info__().capabilities()["boolean indexing"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """Where tensors are made if nobody says where.

        >>> mg.__array_namespace_info__().default_device()
        cpu
        """
        return default_device()

    def devices(self) -> list[Any]:
        """The devices that are there.

        >>> "cpu" in [str(d) for d in mg.__array_namespace_info__().devices()]
        True
        """
        return [as_device(name) for name in available_devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """What Python numbers and indices become.

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
        """The standard's dtypes by name, all of them or those of a kind.  (float16 is not one of the standard's.)

        >>> list(mg.__array_namespace_info__().dtypes(kind="signed integer"))
        ['int8', 'int16', 'int32', 'int64']
        """
        as_device(device)
        standard = {name: d for name, d in dtypes.ALL.items() if d is not dtypes.float16}
        return {name: d for name, d in standard.items() if kind is None or dtypes.isdtype(d, kind)}


def __array_namespace_info__() -> NamespaceInfo:
    """What a program that works with any array library may ask.

    >>> sorted(name for name in dir(mg.__array_namespace_info__()) if not name.startswith("_"))
    ['capabilities', 'default_device', 'default_dtypes', 'devices', 'dtypes']
    """
    return NamespaceInfo()
