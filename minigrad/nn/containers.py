"""Modules that hold other modules: applied in a row, in a list, or by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..core.tensor import Tensor
from ..support.errors import ConversionError
from ..support.words import a_type
from .module import Module


class _Numbered(Module):
    """Modules with the names 0, 1, 2 ..., which are also their names in a state."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self.extend(items)

    def __len__(self) -> int:
        return sum(name.isdecimal() for name in vars(self))

    def __iter__(self) -> Iterator[Any]:
        return iter([item for name, item in vars(self).items() if name.isdecimal()])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)._of(list(self)[index])
        return getattr(self, str(range(len(self))[index]))

    def __setitem__(self, index: int, item: Any) -> None:
        setattr(self, str(range(len(self))[index]), self._checked(item, index))

    def __delitem__(self, index: Any) -> None:
        items = list(self)
        del items[index]
        self._replace(items)

    def append(self, item: Any) -> Any:
        """Add a module at the end.  Returns the container."""
        count = len(self)
        setattr(self, str(count), self._checked(item, count))
        return self

    def extend(self, items: Iterable[Any]) -> Any:
        """Add several modules at the end.  Returns the container."""
        for item in items:
            self.append(item)
        return self

    def insert(self, index: int, item: Any) -> None:
        """Insert a module before number `index`."""
        items = list(self)
        items.insert(index, item)
        self._replace(items)

    @classmethod
    def _of(cls, items: list[Any]) -> Any:
        return cls(items)

    def _replace(self, items: list[Any]) -> None:
        for number in range(len(self)):
            delattr(self, str(number))
        self.extend(items)

    def _checked(self, item: Any, place: int) -> Any:
        if not isinstance(item, Module):
            raise ConversionError(f"{type(self).__name__}: item {place} is {a_type(item)}, not a module",
                                  hint="a plain list holds anything, and its modules are found too")
        return item


class Sequential(_Numbered):
    """Modules and functions applied one after the other.

    >>> model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.Tanh(), mg.nn.Linear(3, 1))
    >>> model
    Sequential(13 parameters
      0: Linear(2 → 3)
      1: Tanh()
      2: Linear(3 → 1)
    )
    >>> len(model), model[0].weight.shape, model(mg.ones((5, 2))).shape, len(model[:2])
    (3, (3, 2), (5, 1), 2)
    """

    def __init__(self, *layers: Any) -> None:
        super().__init__(layers)

    def forward(self, x: Any) -> Tensor:
        for layer in self:
            x = layer(x)
        return x

    @classmethod
    def _of(cls, items: list[Any]) -> Any:
        return cls(*items)

    def _checked(self, item: Any, place: int) -> Any:
        if not callable(item):
            raise ConversionError(
                f"{type(self).__name__}: layer {place} is {a_type(item)}, which cannot be called",
                hint="Sequential(*layers) for layers in a list",
            )
        return item


class ModuleList(_Numbered):
    """Modules in a list.  A plain list in an attribute works too; a ModuleList can also be part of other containers.

    >>> layers = mg.nn.ModuleList([mg.nn.Linear(2, 2) for _ in range(3)])
    >>> layers.append(mg.nn.Tanh())
    ModuleList(18 parameters
      0: Linear(2 → 2)
      1: Linear(2 → 2)
      2: Linear(2 → 2)
      3: Tanh()
    )
    >>> [type(layer).__name__ for layer in layers[2:]], list(layers.state_dict())[:2]
    (['Linear', 'Tanh'], ['0.weight', '0.bias'])
    """


class ModuleDict(Module):
    """Modules by name.

    >>> heads = mg.nn.ModuleDict({"up": mg.nn.Linear(2, 1), "down": mg.nn.Linear(2, 1)})
    >>> heads["up"], "side" in heads, list(heads.state_dict())
    (Linear(2 → 1), False, ['up.weight', 'up.bias', 'down.weight', 'down.bias'])
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        self.update(modules or {})

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise ConversionError(f"ModuleDict: there is no module {name!r}", expect=", ".join(self) or "nothing yet")
        return vars(self)[name]

    def __setitem__(self, name: str, module: Module) -> None:
        if not isinstance(module, Module):
            raise ConversionError(f"ModuleDict: {name!r} is {a_type(module)}, not a module")
        if not isinstance(name, str) or not name or "." in name or hasattr(type(self), name):
            raise ConversionError(f"ModuleDict: {name!r} cannot be a name",
                                  expect="text without dots, and not the name of a method")
        setattr(self, name, module)

    def __delitem__(self, name: str) -> None:
        delattr(self, name)

    def __contains__(self, name: object) -> bool:
        return name in vars(self) and isinstance(vars(self)[name], Module)  # type: ignore[index]

    def __len__(self) -> int:
        return len(self.items())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def items(self) -> list[tuple[str, Any]]:
        """The names and the modules."""
        return [(name, module) for name, module in vars(self).items() if isinstance(module, Module)]

    def keys(self) -> list[str]:
        """The names."""
        return [name for name, _ in self.items()]

    def values(self) -> list[Any]:
        """The modules."""
        return [module for _, module in self.items()]

    def update(self, modules: Mapping[str, Module]) -> None:
        """Add or replace modules."""
        for name, module in dict(modules).items():
            self[name] = module
