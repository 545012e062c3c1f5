"""Answers `import torch`: programs and their helper files run without a changed line."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..support.errors import ConversionError, MissingImportError
from ..support.synonyms import nearest
from .speaking import activate, deactivate

HOME = f"{__package__}.torch"


class TorchFinder:
    """Finds `torch` and its rooms in `minigrad.compat`."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, FINDER, is_package=True) if name.partition(".")[0] == "torch" else None  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        import_module(HOME)
        name = HOME + spec.name.removeprefix("torch")
        if name not in sys.modules:
            rooms = ["torch" + each.removeprefix(HOME) for each in sys.modules if each.startswith(HOME)]
            near = nearest(spec.name, rooms)
            raise MissingImportError(f"minigrad.compat has no {spec.name!r}", hint=near and f"did you mean {near}?")
        spec.loader_state = sys.modules[name].__spec__
        return sys.modules[name]

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """The module is made.  It keeps its own name."""
        module.__spec__ = module.__spec__.loader_state if module.__spec__ else None


FINDER = TorchFinder()


def install() -> None:
    """Answer `import torch` from now on."""
    known = sys.modules.get("torch")
    if known is not None and not known.__name__.startswith(HOME):
        raise ConversionError("this process has imported PyTorch already",
                              hint="restart it, and load minigrad.compat first")
    activate()
    if FINDER not in sys.meta_path:
        sys.meta_path.insert(0, FINDER)  # type: ignore[arg-type]


def uninstall() -> None:
    """Leave `import torch` to Python again, and the methods of tensors to minigrad."""
    deactivate()
    if FINDER in sys.meta_path:
        sys.meta_path.remove(FINDER)  # type: ignore[arg-type]
    for name in [each for each in sys.modules if each.partition(".")[0] == "torch"]:
        del sys.modules[name]


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext minigrad.compat`: this notebook's `import torch` is answered here."""
    install()


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext minigrad.compat`."""
    uninstall()
