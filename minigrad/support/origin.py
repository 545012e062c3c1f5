"""Decides whether code is the user's, minigrad's, or another package's.

Another package lies in Python's standard library, in a folder `site-packages` or `dist-packages`, or in a folder that
was given to pip as `--target`; a module without a file belongs where its package does.  All other code is the user's:
scripts, notebooks, packages in an editable install, and code that `exec` makes for one of these.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import types
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from .source import OURS, installed_in

FOLDERS = ("/site-packages/", "/dist-packages/")
PYTHON = tuple({sysconfig.get_path(name).replace("\\", "/") + "/" for name in ("stdlib", "platstdlib")})
NUMPY = np.__path__[0].replace("\\", "/") + "/"


def is_our_file(filename: str) -> bool:
    """Whether a file is minigrad's."""
    return filename.startswith((*OURS.values(),))


@lru_cache(maxsize=4096)
def is_foreign_file(filename: str) -> bool:
    """Whether a file belongs to another package: the standard library, or an installed one other than minigrad."""
    if is_our_file(filename):
        return False
    path = filename.replace("\\", "/") + "/"  # a folder may be one of these itself
    if path.startswith((*PYTHON, NUMPY, "<frozen")) or any(folder in path for folder in FOLDERS):
        return True
    around = [folder for folder in sys.path if path.startswith(os.path.abspath(folder).replace("\\", "/"))]
    return path.startswith(tuple(chain.from_iterable(map(installed_in, around))))


def is_foreign_module(name: Any) -> bool:
    """Whether the module of this name, or its package, is another package's."""
    if not isinstance(name, str) or name == "__main__":
        return False
    root = name.partition(".")[0]
    files = {*map(_file_of, {name, root})} - {None}
    return any(map(is_foreign_file, files)) if files else root in sys.stdlib_module_names


def _file_of(name: str) -> str | None:
    """The file of a module; for a namespace package, its folder."""
    module = sys.modules.get(name)
    entries = vars(module) if isinstance(module, types.ModuleType) else {}
    file, path = entries.get("__file__"), entries.get("__path__")
    if not isinstance(file, str) and path is not None:
        file = next(iter(path), None)
    return file if isinstance(file, str) else None


def is_foreign_class(cls: type) -> bool:
    """Whether a class is another package's."""
    return is_foreign_module(cls.__module__)


def is_foreign_function(function: Any) -> bool:
    """Whether a function is another package's; without a file, it belongs where its globals do."""
    filename = function.__code__.co_filename
    if filename.startswith("<") and not filename.startswith("<frozen"):
        return is_foreign_module(function.__globals__.get("__name__"))
    return is_foreign_file(filename)


def is_ours(module: Any) -> bool:
    """Whether a module of this name is minigrad's."""
    return isinstance(module, str) and module.partition(".")[0] in OURS
