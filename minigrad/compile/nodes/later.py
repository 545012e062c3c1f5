"""Methods of a class that a higher room defines.  Their module is imported when they are used."""

from __future__ import annotations

from importlib import import_module
from types import MethodType
from typing import Any


class later:
    """The function `name` of a module as a method; without a name, the module itself as an attribute.

    >>> class Circle:
    ...     library = later("math")
    ...     said = later("builtins", "repr")
    >>> Circle().library.pi > 3, Circle().said() == Circle.said(1)
    (True, False)
    """

    def __init__(self, module: str, name: str = "") -> None:
        self.module, self.name = module, name

    def __get__(self, instance: Any, owner: type) -> Any:
        found = import_module(self.module)
        if not self.name:
            return found
        function = getattr(found, self.name)
        return function if instance is None else MethodType(function, instance)
