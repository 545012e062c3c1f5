"""The stages of the compiler as one listing: an operation keeps its line, and what changed is marked."""

import json

import pytest

import minigrad as mg
from minigrad.viz import listings
from minigrad.viz.compiled import FunctionCall, programs_of
from minigrad.viz.listings import Listing, values_of
from minigrad.viz.numbers import Summary
from minigrad.viz.scene import type_of
from tests.viz.ten_programs import TEN


def program(x, w):
    h = mg.tanh(x @ w)
    y = h * 1.0
    return (y * y).sum()


X, W = mg.asarray([[0.5, -1.0]]), mg.asarray([[0.1, 0.2], [0.3, -0.4]])


def rows_of(view):
    """The rows of operations, by their names."""
    return {row["name"]: row for row in view.data()["rows"] if "name" in row}


def test_lines_of_code_are_followed_by_their_operations_and_values():
    view = mg.viz.fusion(program, X, W)
    rows = json.loads(json.dumps(view.data(), allow_nan=False))["rows"]
    assert [row["code"].strip() for row in rows if "code" in row] == [
        "h = mg.tanh(x @ w)", "y = h * 1.0", "return (y * y).sum()"]
    assert [row["name"] for row in rows[:8] if "name" in row] == ["x", "w", "matmul_1", "tanh_1", "multiply_2"]
    assert (rows_of(view)["sum_1"]["value"], rows_of(view)["x"]["value"]) == ("0.274", "[0.5, −1]")
    code, row = rows[2]["code"], rows_of(view)["matmul_1"]
    assert code[slice(*row["span"])] == "x @ w"


def test_an_operation_keeps_its_line_though_it_reads_something_else():
    rows = rows_of(mg.viz.fusion(program, X, W))
    assert rows["multiply_2"]["texts"] == [[0, "1 × 2", "multiply", "tanh_1", "1"], [1]]
    before, after = [0, "1 × 2", "multiply", "multiply_2", "multiply_2"], [1, "1 × 2", "multiply", "tanh_1", "tanh_1"]
    assert rows["multiply_1"]["texts"] == [before, after]


def test_an_operation_keeps_its_line_though_an_input_became_a_number():
    function, *args = TEN["mlp"]()
    divided = [row["texts"] for row in rows_of(mg.viz.fusion(function, *args)).values()]
    assert [[0, "(4,)", "divide", "broadcast_to_1", "sum_1"], [1, "(4,)", "divide", "0.25", "sum_1"]] in divided


def test_each_stage_has_the_shapes_of_its_own_graph():
    """A pass may turn values into another layout: before it, the listing had the shapes after it."""
    function, *args = TEN["cnn"]()
    (shown,) = programs_of(FunctionCall(mg.jit(function), args), "fusion")
    listing = Listing(shown.program, shown.names)
    rows = {row["name"]: row["texts"] for row in listing.rows() if "name" in row}
    changed = 0
    for number, graph in enumerate(listing.graphs):
        for node in graph.nodes:
            text = [text for text in rows[listing.names[listing.line[node]]] if text[0] <= number][-1]
            assert text[1] == type_of(node), (number, text)
            changed += text[0] == number > 0
    assert changed


def test_lines_of_a_loop_are_as_far_left_as_the_others():
    def fall(x, v):
        for _ in range(3):
            v = v - x * 0.1
            x = x + v * 0.1
        return x

    rows = mg.viz.fusion(fall, X, X).data()["rows"]
    assert [row["code"] for row in rows if "code" in row] == ["v = v - x * 0.1", "x = x + v * 0.1"] * 3
    (span,) = [row["span"] for row in rows if row.get("name") == "multiply_1"]
    assert "v = v - x * 0.1"[slice(*span)] == "x * 0.1"


def test_an_operation_that_a_rule_replaced_by_another_kind_ends():
    rows = rows_of(mg.viz.fusion(lambda x: mg.tanh(x) / 4.0, X))
    assert rows["divide_1"]["texts"] == [[0, "1 × 2", "divide", "tanh_1", "4"], [1]]
    assert rows["multiply_1"]["texts"] == [[1, "1 × 2", "multiply", "tanh_1", "0.25"]]


@pytest.mark.parametrize("name", TEN)
def test_each_graph_can_be_read_from_the_lines(name):
    """In each stage, a line for each operation; in the last one, with the names of the kernels."""
    function, *args = TEN[name]()
    for shown in programs_of(FunctionCall(mg.jit(function), args), "fusion"):
        listing = Listing(shown.program, shown.names)
        rows = [row for row in listing.rows() if "name" in row]
        assert len({row["name"] for row in rows}) == len(rows)
        for number, graph in enumerate(listing.graphs):
            now = [[text for text in row["texts"] if text[0] <= number][-1:] for row in rows]
            alive = sum(len(text[0]) > 1 for text in now if text)
            read = {each for node in graph.nodes for each in node.inputs} | {*graph.outputs}
            assert alive == len(graph) + sum(node in read for node in graph.inputs)
        final = {**shown.program.final.names(), **shown.names}
        ended = {row["name"] for row in rows if len(row["texts"][-1]) == 1}
        assert {row["name"] for row in rows} - ended <= set(final.values()) and not ended & set(final.values())


@pytest.mark.parametrize("name", TEN)
def test_every_value_is_made_before_it_is_read(name):
    function, *args = TEN[name]()
    for shown in programs_of(FunctionCall(mg.jit(function), args), "fusion"):
        listing = Listing(shown.program, shown.names)
        place = {line: i for i, line in enumerate(listing.order)}
        for graph in listing.graphs:
            late = [node.name for node in graph.nodes for each in node.sources
                    if place[listing.line[each]] >= place[listing.line[node]]]
            assert late == []


def test_an_operation_that_a_pass_made_is_below_its_line_of_code():
    function, *args = TEN["mlp"]()
    heads, texts, head = {}, {}, ""
    for row in mg.viz.fusion(function, *args).data()["rows"]:
        head = row.get("code", head)
        if "name" in row:
            heads[row["name"]], texts[row["name"]] = head, row["texts"]
    (loss,) = [text[-1] for text in texts.values() if text[-1][2:4] == ["subtract", "log_1"]]
    assert texts[loss[4]][0][0] > 0, "a pass made what is subtracted"
    assert heads[loss[4]] == heads["log_1"]


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_what_both_passes_read_belongs_to_the_line_that_needs_it_first(name):
    """The comparisons that pick the labels are made once, for the gradient of the loss, too."""
    function, *args = TEN[name]()
    codes = [row["code"] for row in mg.viz.fusion(function, *args).data()["rows"] if "code" in row]
    first = next(i for i, code in enumerate(codes) if "backward()" in code)
    assert first > 0 and {*codes[:first]}.isdisjoint(codes[first:])


def test_branches_and_bodies_are_listed_below_their_operation():
    def f(x):
        return mg.cond(x.sum() > 0, lambda x: x * x, lambda x: -mg.exp(x), x)

    (row,) = [row for name, row in rows_of(mg.viz.fusion(f, mg.ones(3))).items() if name == "cond_1"]
    assert row["inside"][0] == "  then:" and "    exp_1: float32 (3,) = exp(tensor_1)" in row["inside"]

    def long(x):
        return mg.cond(x.sum() > 0, lambda x: [x := mg.sin(x) for _ in range(40)][-1], lambda x: x, x)

    rows = rows_of(mg.viz.fusion(long, mg.ones(3)))
    assert len(rows["cond_1"]["inside"]) > 44 and rows["cond_1"]["inside"][-1] == "    return tensor_1"


def test_values_are_those_of_the_next_run_and_nothing_is_printed_or_written(capsys):
    f = mg.jit(lambda x: x + mg.random.uniform((2,)))
    mg.random.seed(3)
    rows = rows_of(mg.viz.fusion(f, mg.zeros(2)))
    assert rows["add_1"]["value"] == Summary.of(f(mg.zeros(2)).numpy()).short()

    total = mg.zeros(2)

    def loud(x):
        nonlocal total
        mg.print("computed")
        with mg.no_grad():
            total += x
        return x * 2

    mg.viz.fusion(loud, mg.ones(2)).data()
    assert capsys.readouterr().out == "" and total.tolist() == [0.0, 0.0]


def test_a_look_at_values_changes_no_cost():
    function, *args = TEN["branches_and_loops"]()
    f = mg.jit(lambda x: mg.scan(lambda c, v: (c + function(c), v), x, mg.ones((3, 3)))[0])
    f(*args)
    before = str(f.cost(*args))
    mg.viz.fusion(f, *args).data()
    assert str(f.cost(*args)) == before


def test_it_says_why_there_are_no_values(monkeypatch):
    f = mg.jit(lambda x, i: x[i] * 2)
    data = mg.viz.fusion(f, mg.ones(3), mg.asarray([7])).data()
    assert data["unknown"].startswith("There are no values: ") and "7" in data["unknown"]
    assert mg.viz.fusion(mg.trace(mg.tanh, X)).data()["unknown"] == "Without arguments there are no values."
    monkeypatch.setattr(listings, "MOST_BYTES", 10)
    assert mg.viz.fusion(mg.tanh, X).data()["unknown"] == "Their values, 16 B, are not shown."


def test_all_operations_are_listed_whole():
    """Of a ResNet, 79 operations had no line; long places lost their end without a sign."""
    def slices(x):
        for _ in range(900):
            x = mg.tanh(x * 1.5) + 1
        return mg.sin(x[0:3:1, 1:5:2, None, 0:1:1, ::2])

    rows = rows_of(mg.viz.fusion(slices, mg.ones((3, 6, 1, 4))))
    assert len(rows) > 2700
    (text,) = [row["texts"][0] for row in rows.values() if row["texts"][0][2] == "slice"]
    assert text[-1] == "index=[0:3:1, 1:5:2, None, 0:1:1, ::2]", "as the code writes it"


def test_a_write_in_place_is_listed_by_what_it_reads():
    """It had the places as Python represents them: `chain=((<primitive slice>, {'index': …`; your line says them."""
    def filled(x):
        y = x * 2
        y[0] = 1.0
        return y

    (text,) = [row["texts"][0] for row in rows_of(mg.viz.fusion(filled, X)).values() if row["texts"][0][2] == "put"]
    assert text[3:] == ["multiply_1", "1"]


def test_nan_is_a_value():
    rows = rows_of(mg.viz.fusion(lambda x: mg.log(x) * 0, mg.asarray([-1.0])))
    assert "nan" in rows["log_1"]["value"]
    graph = mg.trace(lambda x: x * 2, mg.ones((0, 3)))
    values, why = values_of(graph, lambda: [mg.ones((0, 3)).numpy()])
    assert why == "" and values[graph.outputs[0]] == "no numbers"


def test_replaced_views_name_this_one():
    for name in ("beside", "compare"):
        with pytest.raises(mg.MinigradError, match=rf"no view mg.viz.{name} any more[\s\S]*mg.viz.fusion\("):
            getattr(mg.viz, name)


def test_a_value_has_the_steps_that_make_it_and_the_bytes_of_it_that_are_in_memory():
    """Attention runs in blocks of rows: its scores are never whole; and of a long sum only the parts are."""
    def attention(q, k, v):
        return mg.softmax(q @ k.mT, -1) @ v

    query = mg.ones((1, 2, 1024, 64))
    rows = rows_of(mg.viz.fusion(attention, query, query, query))
    assert {name: (row["kernels"], row.get("stored")) for name, row in rows.items() if "matmul" in name} == {
        "matmul_1": (["kernel_1"], None), "matmul_2": (["kernel_1"], "524 kB"),
    }
    rows = rows_of(mg.viz.fusion(lambda x: mg.tanh(x).sum() * 2, mg.ones(200_000)))
    assert (rows["sum_1"]["kernels"], rows["sum_1"]["stored"]) == (["kernel_0", "kernel_1"], "12 B of parts")


def test_results_of_a_loop_are_made_by_the_loop_and_its_kernels_are_only_what_runs():
    def body(c, x):
        return mg.cond(c.sum() > 0, lambda c: mg.tanh(c), lambda c: c * 2, c), x.sum()

    view = mg.viz.fusion(lambda xs: mg.scan(body, mg.ones(4), xs), mg.ones((6, 4)))
    assert [rows_of(view)[name]["kernels"] for name in ("scan_1[0]", "scan_1[1]")] == [["scan_1"]] * 2
    assert [kernel["name"] for kernel in view.data()["kernels"]] == ["kernel_0", "scan_1"]
    lines = [line for kernel in view.data()["kernels"] for line, _ in kernel["lines"]]
    assert not any("by a library" in line for line in lines)
