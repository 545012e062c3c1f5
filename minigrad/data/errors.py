"""The error of data that cannot be had."""

from __future__ import annotations

from ..support.errors import MinigradError


class DataError(MinigradError, RuntimeError):
    """An item of a dataset could not be loaded, a file of data is not as it should be, or a worker has died.

    The error that a dataset raised is its cause, printed above it, with the traceback of the worker that it came from.

    >>> import minigrad as mg
    >>> list(mg.data.DataLoader(mg.data.Mapped([1, 0], lambda x: 1 / x)))
    Traceback (most recent call last):
    minigrad.data.errors.DataError: item 1 of Mapped could not be loaded: ZeroDivisionError: division by zero
    ...

    Hint: `dataset[1]` shows the fault alone.  A loop that begins anew goes on with all the workers, which survive
    what a dataset raises.
    """
