"""The packages that files need, imported when they are."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..support.errors import FileError


def needed(name: str, caller: str) -> Any:
    """A module of a package that minigrad works without, or the error that says how to get it.

    >>> needed("not_installed.numpy", "load_file")
    Traceback (most recent call last):
    minigrad.support.errors.FileError: load_file needs the package not_installed, which is not here
      Hint: python -m pip install not_installed, or: python3 course add onnx
    ...
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise FileError(
            f"{caller} needs the package {package}, which is not here",
            hint=f"python -m pip install {package}, or: python3 course add onnx",
        ) from error
