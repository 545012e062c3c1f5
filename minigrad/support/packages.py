"""Optional packages: imported when they are used, with one error for all that are missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .errors import PackageError
from .host import IN_BROWSER

EXTRAS = {  # a package, and the extra of minigrad that contains it
    "anywidget": "lab", "cupy": "gpu", "mpi4py": "distributed", "onnx": "onnx", "pandas": "data", "PIL": "data",
    "pyarrow": "data", "resvg_py": "lab",
}
INSTALLED_AS = {"cupy": '"minigrad[gpu]"', "PIL": "pillow", "resvg_py": "resvg-py"}


def needed(name: str, user: str, hint: str = "") -> Any:
    """Import a module of an optional package for `user`.  The hint adds what to do without the package.

    >>> needed("not_installed.numpy", "load_file")
    Traceback (most recent call last):
    minigrad.support.errors.PackageError: load_file needs the package not_installed, which is not installed
      Hint: python -m pip install not_installed
    ...
    """
    package = name.partition(".")[0]
    try:
        return import_module(name)
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError)
        raise PackageError(
            f"{user} needs the package {INSTALLED_AS.get(package, package)}, which "
            + ("is not installed" if missing else f"cannot be imported: {error}"),
            hint=how_to_install(package) + hint,
        ) from error


def how_to_install(package: str) -> str:
    """The commands that install an optional package.  They need a computer: a browser has no command line.

    >>> how_to_install("PIL")
    'python -m pip install pillow, or: python3 course add data'
    """
    pip = "this browser cannot install it; on a computer, " * IN_BROWSER
    pip += f"python -m pip install {INSTALLED_AS.get(package, package)}"
    return f"{pip}, or: python3 course add {EXTRAS[package]}" if package in EXTRAS else pip
