"""The cost model of a device: what it counts, when work runs, and the view of a program at work."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.look.watching import watching
from minigrad_course.views import queues
from minigrad_course.views.queues import COPY_IN, CPU, FAST, KERNEL, LINK, Work, batches, ended, scheduled


def times(works, launch=5):
    return [(span.begin, span.end) for span in scheduled(works, launch)]


def test_an_engine_does_one_work_at_a_time_in_the_order_of_the_launches():
    assert times([Work("a", KERNEL, 100, 0), Work("b", KERNEL, 10, 1)]) == [(5, 105), (105, 115)]


def test_engines_work_at_the_same_time_in_different_streams_and_not_in_one():
    copy, kernel = Work("in", COPY_IN, 100, 0), Work("k", KERNEL, 50, 1)
    assert times([copy, kernel]) == [(5, 105), (10, 60)]
    assert times([copy, kernel._replace(stream=0)]) == [(5, 105), (105, 155)]


def test_work_waits_for_the_work_that_it_needs_in_another_stream():
    assert times([Work("in", COPY_IN, 100, 0), Work("k", KERNEL, 50, 1, (0,))]) == [(5, 105), (105, 155)]


def test_a_short_kernel_waits_for_its_launch():
    assert times([Work("k", KERNEL, 1)] * 3) == [(5, 6), (10, 11), (15, 16)]
    assert ended([]) == 0


@pytest.mark.parametrize(("streams", "end"), [(1, 905), (2, 605), (3, 505)])
def test_streams_shorten_three_batches(streams, end):
    assert ended(scheduled(batches(streams, 100.0), 5.0)) == end


def calls_of(program):
    mg.as_device("cpu:1")
    with watching() as calls:
        program()
    return calls


def test_a_kernel_costs_its_bytes_or_its_arithmetic_whichever_takes_longer():
    x = mg.ones((1000, 1000))
    add, product = calls_of(lambda: (x + 1) @ x)
    assert queues.time_of(add, CPU) == pytest.approx(8e6 / CPU.moved, rel=1e-3)
    assert queues.time_of(product, CPU) == pytest.approx(2e9 / CPU.computed)
    assert queues.time_of(product, FAST) == queues.time_of(product, CPU) / 100


def test_views_cost_nothing_and_copies_go_over_the_link():
    x = mg.ones((10, 10))
    calls = calls_of(lambda: (x.to("cpu:1").T + 1).to("cpu"))
    works = queues.works_of(calls, "cpu:1")
    assert [(work.name, work.engine) for work in works] == [
        ("copy", "copies in"), ("add", "kernels"), ("copy", "copies out")]
    assert works[0].time == LINK.launch + 400 / LINK.moved


def test_at_work_shows_the_copies_and_the_kernels_of_a_device_that_is_new():
    x = mg.asarray(np.ones(4, "f"))
    programs = {"one": lambda: (x.to("cpu:3") * 2).to("cpu"), "two": lambda: (x.to("cpu:3") + 1)}
    view = queues.at_work(programs, "cpu:3", "program")
    assert repr(view) == "<cpu:3 at work: 1 call of 1 kernel>"
    lines = view.text().splitlines()
    assert lines[0].startswith("one: 1 kernel and 2 copies take 25 microseconds") and len(lines) == 2
    assert "multiply" in view.to_svg() and "16 bytes" in view.to_svg()
