"""The type stubs list the members of the Tensor class and the names that the packages export."""

import pytest

from tests.typing_stub import stubs

STUBS = stubs()


@pytest.mark.parametrize("path", STUBS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_stubs_are_up_to_date(path):
    message = "write it anew: python3 course python -m tests.typing_stub"
    assert path.read_text(encoding="utf-8") == STUBS[path], message
