"""Files that are there whole, or not at all."""

import pytest

from minigrad.core.files import whole_file


@pytest.mark.parametrize("before", [None, "before"])
def test_an_error_while_writing_passes_and_leaves_what_was_there(tmp_path, before):
    path = tmp_path / "numbers"
    if before:
        path.write_text(before)
    with pytest.raises(ZeroDivisionError), whole_file(path) as temporary:
        temporary.write_text("half of")
        1 / 0  # noqa: B018
    assert [p.read_text() for p in tmp_path.iterdir()] == ([before] if before else [])


def test_what_never_was_written_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "numbers"):
        pass
    assert not [*tmp_path.iterdir()]
