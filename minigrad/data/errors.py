"""The error for data that cannot be loaded."""

from __future__ import annotations

from ..support.errors import MinigradError


class DataError(MinigradError, RuntimeError):
    """An item of a dataset could not be loaded, a data file is damaged, or a worker has died.

    The error that the dataset raised is its cause, printed above it, with the worker's traceback.

    >>> import minigrad as mg
    >>> list(mg.data.DataLoader(mg.data.Mapped([1, 0], lambda x: 1 / x)))
    Traceback (most recent call last):
    minigrad.data.errors.DataError: item 1 of Mapped could not be loaded: ZeroDivisionError: division by zero
    ...

    Hint: `dataset[1]` shows the error alone.  The workers survive errors of a dataset: a new loop goes on
    with all of them.
    """
