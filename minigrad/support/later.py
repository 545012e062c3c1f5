"""Attributes of a class that a higher room defines.  Their module is imported when they are first read."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class later:
    """The attribute `name` of a module, or the module itself, as an attribute of a class.

    >>> class Circle:
    ...     library = later("math")
    ...     tau = later("math", "tau")
    >>> Circle().library.pi < Circle.tau
    True
    """

    def __init__(self, module: str, name: str = "") -> None:
        self.module, self.name = module, name

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.owner, self.attribute = owner, attribute

    def __get__(self, instance: Any, owner: type) -> Any:
        found = import_module(self.module)
        setattr(self.owner, self.attribute, getattr(found, self.name) if self.name else found)
        return getattr(owner if instance is None else instance, self.attribute)
