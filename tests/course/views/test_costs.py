"""Bytes that are counted while a function runs, the pages that show them, and two programs compared."""

import itertools

import pytest

import minigrad as mg
from minigrad.compile.look import record
from minigrad.viz.drawing import Drawing
from minigrad_course.views.costs import Pass, changed, costs, lanes, pairs, passes, quickest, sizes


def test_each_array_is_read_once_and_numbers_and_views_cost_nothing_unless_they_copy():
    x = mg.ones((10, 10))
    found = passes(lambda x: (x * x).T.reshape(100) + 2, x)
    assert [(each.name, each.read, each.written) for each in found] == [
        ("multiply", 400, 400), ("reshape", 400, 400), ("add", 400, 400)]
    assert [each.name for each in passes(lambda x: x.reshape(100)[3:] + 2, x)] == ["add"]
    (row,) = passes(lambda x, b: x + b, x, mg.ones(10))
    assert (row.read, row.bytes) == (440, 840)


def test_several_results_and_lists_of_inputs_count():
    x = mg.ones(10)
    assert passes(lambda: mg.concat([x, x * 2]))[-1].bytes == 160
    assert passes(lambda: mg.concat([x, x]))[-1].bytes == 120  # the same array is read once


def test_the_quickest_of_several_runs_counts():
    found = quickest(mg.tanh, mg.ones(1000), runs=3)
    assert len(found) == 1 and found[0].bytes == 8000 and found[0].seconds > 0


def test_costs_has_bytes_on_its_cover_and_times_on_a_page_of_their_own():
    book = costs(lambda x: mg.tanh(x) + 1, mg.ones(2_500_000), runs=1)
    assert repr(book) == "<2 kernels: 20 MB read, 20 MB written>"
    assert book.text() == "tanh: reads 10 MB, writes 10 MB\nadd: reads 10 MB, writes 10 MB"
    counted, timed = book.pages[0]
    assert (counted.name, timed.name) == ("bytes", "time")
    assert "together 40 MB" in book.to_svg() and "GB/s" not in book.to_svg()
    assert "GB/s" in "".join(timed.drawing.pieces)
    rows = dict(timed.blocks[0][1][1]["rows"])
    assert rows.keys() == {"in all", "in kernels", "memory", "arithmetic", "operations per byte"}


def test_costs_of_a_function_that_computes_nothing():
    assert repr(costs(lambda: None)) == "<0 kernels: 0 B read, 0 B written>"


def test_a_clock_with_large_steps_times_several_calls(monkeypatch):
    """A browser's clock has steps of 0.1 or 1 ms."""
    reads, called = itertools.count(), []
    monkeypatch.setattr(record, "perf_counter", lambda: next(reads) // 5 * 1e-3)  # the third pair of reads differs
    assert record.seconds_of(called.append, 0) == pytest.approx(1e-3 / 100)
    assert len(called) == 1 + 10 + 100


@pytest.mark.slow
def test_sizes_shows_bytes_that_grow_and_times():
    book = sizes(lambda x: x + 1, runs=1)
    assert book.text().splitlines()[0] == "1: 8 B moved" and book.text().endswith("10,000,000: 80 MB moved")
    assert "µs" not in book.to_svg() and "dispatch" in "".join(book.pages[0][1].drawing.pieces)


def test_a_kernel_without_a_counterpart_is_marked():
    before = [Pass("a", 4, 4, 0), Pass("b", 4, 4, 0), Pass("c", 8, 4, 0), Pass("d", 4, 4, 0)]
    after = [Pass("a", 4, 4, 0), Pass("fused", 4, 4, 0), Pass("d", 4, 4, 0)]
    assert changed(before, after) == ([False, True, True, False], [False, True, False])
    drawing = Drawing(100, 200)
    lanes(drawing, 0, (("before", before), ("after", after)), 100)
    rects = [piece for piece in drawing.pieces if "<rect" in piece]
    assert len(rects) == 7 and "c: 12 bytes" in rects[2]
    widths = [float(piece.partition('width="')[2].partition('"')[0]) for piece in rects]
    assert sum(widths[:4]) == pytest.approx(100, rel=0.01) and sum(widths[4:]) == pytest.approx(100 * 24 / 36, rel=0.01)


def test_bars_of_a_pair_are_to_scale():
    drawing = Drawing(700, 60)
    pairs(drawing, 0, 700, [("MB moved", 100.0, 25.0, " MB")])
    widths = [float(p.partition('width="')[2].partition('"')[0]) for p in drawing.pieces if "<rect" in p]
    assert widths == [500, 125] and "25 MB" in "".join(drawing.pieces)
