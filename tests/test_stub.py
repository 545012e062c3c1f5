"""The type stub of Tensor lists the members of the class."""

from tests.typing_stub import STUB, stub


def test_the_stub_is_up_to_date():
    message = "write it anew: python3 course python -m tests.typing_stub"
    assert STUB.read_text(encoding="utf-8") == stub(), message
