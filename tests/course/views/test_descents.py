"""From the graph to machine code, and what each pass saves: pictures that lessons use."""

import minigrad as mg
from minigrad.compile.rewriting import algebra
from minigrad.core.override import overriding
from minigrad.support.errors import CompileError
from minigrad_course.units.u11_fusion.savings import page_of, saved, stages_of, table_of
from minigrad_course.views import descents
from minigrad_course.views.descents import descent


def test_a_row_of_softmax_takes_three_loops_and_each_level_is_a_page():
    book = descent(mg.softmax, mg.ones((8, 32)))
    assert [page.name for page in book.pages[0]] == ["graph", "kernels", "loops", "machine code"]
    assert repr(book).endswith("6 operations, 1 kernel, 3 loops over a row>")
    assert "own_exp" in book.text() and "for each row: max_1, sum_1, divide_1" in book.text()


def test_lines_of_the_chosen_operation_are_marked():
    marked = [sum("<rect" in piece for piece in page.drawing.pieces)
              for page in descent(lambda x: mg.tanh(x) * 2, mg.ones(64), of="tanh").pages[0]]
    assert marked == [2, 1, 2, 0]  # in the graph, its own line and that of its reader


def test_without_a_compiler_the_page_says_why(monkeypatch):
    def missing():
        raise CompileError("llvmlite could not be loaded")

    monkeypatch.setattr(descents, "llvmlite", missing)
    page = descent(mg.softmax, mg.ones((8, 32))).pages[0][3]
    assert "llvmlite could not be loaded".replace(" ", "\u00a0") in page.drawing.to_svg("")


def test_stages_say_which_pass_was_replaced_and_what_fusion_saves():
    x = mg.ones(1000)

    def nothing(graph, note):
        return mg.trace(lambda x: mg.tanh(x) + 2, x) if len(graph) > 2 else graph

    with overriding(algebra.simplify, nothing):
        f = mg.jit(lambda x: mg.tanh(x * 1.0) + 2)
        stages = stages_of(f.passes(x), f.cost(x))
    assert [stage.name for stage in stages] == ["as traced", "simplify, yours", "fused"]
    assert [stage.launches for stage in stages] == [3, 2, 1]
    assert saved(stages) == "3 → 1 launches, 24 kB → 8 kB"
    assert "simplify, yours" in table_of(stages)


def test_the_bars_of_stages_are_to_scale():
    f = mg.jit(lambda x: mg.tanh(x * 1.0) + 2)
    stages = stages_of(f.passes(mg.ones(10)), f.cost(mg.ones(10)))
    svg = page_of(stages, "three stages").drawing.to_svg("three stages")
    assert 'width="460"' in svg and 'width="153.3"' in svg  # 3 launches and 1 launch
