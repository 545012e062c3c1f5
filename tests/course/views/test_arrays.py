"""Views of arrays: the memory map, views by strides, calls into the library, a convolution."""

import numpy as np
import pytest

import minigrad as mg
from minigrad_course.units.u02_arrays import crossings, strides
from minigrad_course.units.u02_arrays.convolutions import convolution
from minigrad_course.units.u02_arrays.memory_maps import memory_map, states_of


def test_a_map_shows_views_of_one_buffer_with_strides_and_offsets():
    last = states_of("a = mg.arange(12).reshape(3, 4)\nb = a.T\nc = a[1:, ::2]\nd = a[::-1]\ne = a + 0")[-1]
    assert last.names["b"] == (0, (4, 3), (1, 4), 0)
    assert last.names["c"] == (0, (2, 2), (4, 2), 4)
    assert last.names["d"] == (0, (3, 4), (-4, 1), 8)
    assert last.names["e"].buffer == 1
    assert last.names["c"].indices() == [4, 6, 8, 10]


def test_a_line_that_writes_raises_the_version_and_marks_what_changed():
    states = states_of("a = mg.zeros(4)\nb = a[1:3]\nb += 1\na = a + 1\nb[0] = 5")
    assert [state.versions[0] for state in states] == [0, 0, 1, 1, 2]
    assert states[2].written[0] == {1, 2}
    assert states[3].names["a"].buffer == 1  # a refers to a new array now


def test_a_map_shows_which_version_an_operation_kept_and_where_a_gradient_stops():
    states = states_of(
        "x = mg.ones(2)\nw = mg.asarray([1.0, 2.0], requires_grad=True)\np = w * x\nq = w + x\nx += 1\n"
        "q.sum().backward()\np.sum().backward()\nnever = x")
    assert [(each.name, each.buffer, each.version) for each in states[-1].kept] == [("p", 0, 0)]
    assert "changed in place" in states[-1].error and states[-1].line == 7  # and the next line does not run
    book = memory_map("x = mg.ones(2)\nw = mg.asarray([1.0, 2.0], requires_grad=True)\np = w * x\nx += 1")
    assert "p kept version 0 of buffer 1" in book.text()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (3, "needs the text of a program, and 3 is not one"),
        ("a = (", "cannot read line 1"),
        ("a = mg.ones(100)", "more than 48 numbers"),
    ],
)
def test_a_map_of_something_else_is_refused(code, says):
    with pytest.raises(mg.MinigradError, match=says):
        memory_map(code)


def test_an_error_of_the_program_ends_the_map():
    assert "stopped: NameError" in memory_map("a = mg.ones(2)\nb = nothing").text()


def test_a_picture_of_strides_marks_what_is_beyond_the_buffer():
    assert strides.says((3, 3), (1, 3), 0, 14) == "9 numbers are read, 9 different ones. Nothing is copied."
    assert strides.says((2, 2), (0, 1), 0, 14) == "4 numbers are read, 2 different ones. Nothing is copied."
    assert "beyond the buffer, at element 16" in strides.says((3, 3), (4, 4), 0, 14)
    assert "✗" in strides.strided((3, 3), (4, 4), 0, 14).to_svg("a view")
    assert len(strides.bench().pages) == len(strides.STEPS) ** 2 * len(strides.OFFSETS)


def test_measured_views_show_counts_on_their_cover_and_times_on_other_pages():
    for book in (crossings.ladder(4), crossings.race((1, 8)), crossings.there_and_back(lambda: mg.ones(2) + 1)):
        assert book.cover == 0 and len(book.pages[0]) > 1
        again = book.to_svg()
        assert "machine" not in again and "times as long" not in again
    assert repr(crossings.there_and_back(lambda: mg.tanh(mg.ones(2)))) == "<2 calls: full, tanh>"
    with pytest.raises(mg.MinigradError, match="there_and_back needs a function"):
        crossings.there_and_back(mg.ones(2))


def test_the_four_ways_compute_the_same_product():
    lists = np.arange(9.0).reshape(3, 3).tolist(), np.arange(9.0)[::-1].reshape(3, 3).tolist()
    a, b = map(mg.asarray, lists)
    right = (np.array(lists[0]) @ np.array(lists[1])).tolist()
    assert crossings.by_loops(*lists) == right
    assert [[each.item() for each in row] for row in crossings.by_numbers(a, b)] == right
    assert [row.tolist() for row in crossings.by_rows(a, b)] == right


def test_a_convolution_counts_its_windows():
    book = convolution(np.ones((2, 5, 5)), {"one": np.ones((3, 3)), "two": np.eye(3)}, np.ones((2, 3, 3, 2)))
    assert repr(book) == "<2 pictures of 25 numbers: 9 windows, 81 numbers read, 0 copied>"
    assert book.to_svg().count("the window at") == 18
