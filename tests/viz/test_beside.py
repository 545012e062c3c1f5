"""Eager mode next to graph mode: each step of both, as data and on a page."""

import json

import pytest

import minigrad as mg
from minigrad.viz.numbers import Summary
from tests.viz.browser import needs_browser, opened


def program(x, w):
    h = mg.tanh(x @ w)
    y = h * 1.0
    return (y * y).sum()


def made():
    return mg.viz.beside(program, mg.asarray([[0.5, -1.0]]), mg.asarray([[0.1, 0.2], [0.3, -0.4]]))


def test_steps_show_operations_then_passes_then_kernels():
    data = json.loads(json.dumps(made().data(), allow_nan=False))
    assert [step["kind"] for step in data["steps"]] == ["line"] * 5 + ["passes", "fused", "run", "run"] + ["again"] * 5
    assert [row["name"] for row in data["eager"]] == ["matmul", "tanh → h", "multiply → y", "multiply", "sum"]
    assert "x * 1 -> x" in data["steps"][5]["graph"] and len(data["left"]) == 4
    assert data["eager"][0]["line"]["text"][2].strip() == "h = mg.tanh(x @ w)"


def test_a_second_call_runs_every_line_in_eager_mode_and_only_kernels_in_graph_mode():
    again = [step for step in made().data()["steps"] if step["kind"] == "again"]
    assert "Python runs the line again, and tanh is computed" in again[1]["eager"]
    assert "No line of Python runs; kernel 1 runs" in again[0]["graph"]
    assert [("kernel" in step["graph"]) for step in again] == [True, True, False, False, False]


@pytest.mark.slow
def test_eager_and_compiled_values_agree():
    data = made().data()
    (written,) = data["kernels"][-1]["writes"]
    assert written["value"] == data["eager"][-1]["value"] == "0.274"


def test_operations_each_belong_to_a_kernel():
    data = made().data()
    assert sorted({n for kernel in data["kernels"] for n in kernel["nodes"]}) == list(range(len(data["left"])))


@pytest.mark.slow
def test_view_as_text_and_in_a_file(tmp_path):
    beside = made()
    assert repr(beside) == "<5 operations one by one, beside 2 kernels>"
    assert beside._repr_mimebundle_()["text/plain"] == repr(beside)
    beside.save(tmp_path / "both.html")
    assert "is recorded" in (tmp_path / "both.html").read_text(encoding="utf-8")
    beside.save(tmp_path / "both.txt")
    with pytest.raises(mg.MinigradError, match="can't be saved"):
        beside.save("both.gif")


@pytest.mark.slow
def test_functions_of_too_many_operations_are_refused():
    def long(x):
        for _ in range(700):
            x = mg.sin(x)
        return x

    with pytest.raises(mg.MinigradError, match="700 operations are too many"):
        mg.viz.beside(long, mg.ones(2))


@needs_browser
def test_stepping_through_both():
    with opened(made().to_html()) as page:
        assert [b.inner_text() for b in page.locator(".mg-view button").all()] == ["‹ back", "next ›"]
        eager, graph = page.locator(".mg-column").all()
        assert eager.locator(".mg-done").count() == 5 and graph.locator("text=no value yet").count() == 5  # at first
        page.focus(".mg-view")
        page.keyboard.press("Home")
        page.click("text=next ›")
        assert "0.5" in eager.locator(".mg-here").inner_text()
        assert "no value yet" in graph.locator(".mg-here").inner_text()
        assert "x @ w" in page.inner_text(".mg-code .mg-here")
        page.focus(".mg-view")
        for _ in range(8):
            page.keyboard.press("ArrowRight")
        assert graph.locator(".mg-kernel.mg-done").count() == 2 and "writes sum: 0.274" in graph.inner_text()
        assert "kernel 2 runs" in page.locator("[aria-live]").text_content()
        page.keyboard.press("ArrowRight")
        assert eager.locator(".mg-done").count() == 1 and "second call: 1 computed" in eager.inner_text()
        assert "second call: 0 recorded, 1 kernel run" in graph.inner_text()
        assert graph.locator(".mg-kernel.mg-waits").count() == 1 and "x @ w" in page.inner_text(".mg-code .mg-here")
        page.keyboard.press("End")
        assert eager.locator(".mg-done").count() == 5 and "sum: 0.274" in graph.inner_text()


def test_random_numbers_are_those_of_the_next_run():
    f = mg.jit(lambda x: x + mg.random.uniform((2,)))
    mg.random.seed(3)
    view = mg.viz.beside(f, mg.zeros(2))
    shown = [view.values[node].short() for node in view.graph.outputs]
    assert shown == [Summary.of(f(mg.zeros(2)).numpy()).short()]
