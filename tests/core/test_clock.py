"""When an array was last overwritten, and by which line."""

import numpy as np

from minigrad.core import clock
from minigrad.core.clock import mark_written, written_since


def test_a_write_is_noted_for_everything_that_shares_the_memory():
    array, other = np.zeros((2, 3)), np.zeros((2, 3))
    mark_written(array[0, 1:])
    assert written_since(array, 0) is not None and written_since(array[1], 0) is not None
    assert written_since(other, 0) is None


def test_an_array_at_the_address_of_another_has_its_own_writes(monkeypatch):
    gone, new = np.zeros(3), np.zeros(3)
    mark_written(gone)
    monkeypatch.setitem(clock.WRITTEN, id(new), clock.WRITTEN[id(gone)])  # as if `new` had its address
    assert written_since(gone, 0) is not None and written_since(new, 0) is None
    mark_written(new)
    assert written_since(new, 0) is not None
