"""The bench: sliders for one operation, and the way of each call to its kernel."""

import math
import re
import warnings
from itertools import groupby, pairwise

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.look.watching import watching
from minigrad.devices import Device, Kernels, registry
from minigrad.support.source import line_of
from minigrad.viz.callpaths import OPENED, levels_of, line_in, pages_of, paths_of
from minigrad.viz.compiled import not_jitted
from tests.viz.ten_programs import TEN

# sliders --------------------------------------------------------------------------------------------------------------


def numbers(book, page):
    return dict(book.pages[page][0].blocks)["numbers"][1]["rows"]


def checks(book):
    """The derivatives by differences at the start, with their marks."""
    return [check for *_, check in numbers(book, book.opening)]


def test_the_bench_reads_values_and_slopes():
    book = mg.viz.bench(mg.sin, x=(-2, 2))
    data = book.data()
    for i in (0, 13, 40):
        x = float(data["knobs"][0]["settings"][i].replace("−", "-"))
        ((name, passed, check),) = numbers(book, i * 4 + 3)  # the incoming gradient is 2
        assert name == "x" and check.startswith("✓")
        assert float(passed.replace("−", "-")) == pytest.approx(2 * math.cos(x), abs=1e-2)


@pytest.mark.slow
def test_kinks_are_named_and_curves_stop_outside_the_domain():
    book = mg.viz.bench(mg.relu, x=(-2, 2))
    assert "✗ −0.5: a kink or a jump" in str(numbers(book, 20 * 4))
    outside = mg.viz.bench(mg.log, x=(-1, 1))
    assert all(0 <= x for line in curves_of(outside) for x, _ in line), "no curve where there is no value"
    assert 0 <= curves_of(mg.viz.bench(mg.sqrt, x=(-1, 1)))[0][0][0] < 0.02, "a curve begins where values do"
    assert "nan" in outside.data()["pages"][0][0][1] and not re.search('d="[^"]*nan', str(outside.data()["pieces"]))


def curves_of(book):
    """The points (x, y) of the curves of the first chart."""
    piece = next(each for each in book.pages[0][0].drawing.pieces if " by " in each)
    place = re.search(r'<rect x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)"', piece)
    left, top, width, height = map(float, place.groups())
    ends = [float(book.knobs[0].settings[i].replace("−", "-")) for i in (0, -1)]
    found = []
    for path in re.findall(r'<path d="(M[^"]*)"[^>]*stroke-width="1.6"', piece):
        points = re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)
        found.append([(ends[0] + (ends[1] - ends[0]) * (float(x) - left) / width, 1 - (float(y) - top) / height)
                      for x, y in points])
    return found


def test_curves_are_exact_where_they_bend_or_jump():
    slope = curves_of(mg.viz.bench(mg.relu))[1]
    assert len({round(y, 2) for _, y in slope}) == 2, "a step has no numbers between"
    stairs, _ = curves_of(mg.viz.bench(mg.floor, x=(0.5, 3)))
    assert len({round(y, 2) for _, y in stairs}) == 3
    wave, _ = curves_of(mg.viz.bench(mg.sin, x=(-100, 100)))
    turns = np.sign(np.diff([y for _, y in wave]))
    turns = turns[turns != 0]
    assert np.sum(turns[1:] != turns[:-1]) == 64, "every maximum and minimum of the sine"


def test_differences_say_why_they_do_not_match():
    assert checks(mg.viz.bench(lambda x: x * x.detach())) == ["✗ 2.1: the rule differs"]
    assert checks(mg.viz.bench(lambda x: x.astype(mg.float32) * 3)) == ["✓ 3"]
    assert [check[0] for check in checks(mg.viz.bench(mg.nn.Dropout(0.5), x=[1.0, 2.0]))] == ["✓", "✓"]
    assert checks(mg.viz.bench(mg.sin, x=(1e5, 1e5 + 10)))[0].startswith("✓")
    assert checks(mg.viz.bench(lambda x: x * x, x=(1e9, 1e9 + 10))) == ["✓ 2e+09"]


def test_the_formula_beside_the_sliders_is_that_of_the_only_operation():
    def add(x, y):
        return x * y

    headings = [heading for heading, _ in mg.viz.bench(add).pages[0][0].blocks]
    assert headings[:2] == ["numbers", "what multiply(x, y) computes"], "what ran, whatever its name is"
    assert [heading for heading, _ in mg.viz.bench(lambda x: x * x + 1).pages[0][0].blocks] == ["numbers"]
    assert mg.viz.bench(mg.add).pages[0][0].blocks[1][1][0] == "math"


def test_several_results_have_a_curve_each():
    book = mg.viz.bench(lambda x: (mg.max(x), mg.argmax(x), {"least": mg.min(x)}), x=[1.0, 2.0])
    assert book.text().startswith("f at x[0] = 1, x[1] = 2: 2, 1. ")


def test_a_saved_page_has_the_code(tmp_path):
    def twice(x):
        return mg.tanh(x) * 2

    for name, book in {"sliders": mg.viz.bench(twice), "calls": mg.viz.bench(twice, mg.ones(2))}.items():
        book.save(tmp_path / f"{name}.html")
        page = (tmp_path / f"{name}.html").read_text()
        code = page.partition("<summary>the code</summary>")[2].partition("</pre>")[0]
        assert "return mg.tanh(x) * 2" in code


def test_the_kernels_are_those_of_one_setting():
    book = mg.viz.bench(lambda x: mg.cond(x > 0, lambda v: v * 2, lambda v: v + 1, x))
    assert book.pages[0][1].say.endswith(" It ran at x = 1.05.")


@pytest.mark.slow
def test_a_row_of_numbers_has_a_table_of_derivatives():
    book = mg.viz.bench(mg.softmax, x=[1.0, 2.0])
    first = book.text().splitlines()
    p = np.exp([1, 2]) / np.exp([1, 2]).sum()
    assert f"{p[0]:.3g}, {p[1]:.3g}. With the gradient 1 for result 0, 0 for the others" in first[0]
    assert "it passes back 0.197 to x[0], −0.197 to x[1]." in first[0]
    assert numbers(book, book.opening)[0] == ["x[0]", "0.197", "✓ 0.197"]


def test_unsuitable_functions_are_refused_by_the_bench():
    with pytest.raises(mg.MinigradError, match="9 numbers for the sliders of sum"):
        mg.viz.bench(mg.sum, x=np.ones((3, 3)))
    with pytest.raises(mg.MinigradError, match="0 numbers for the sliders of sum"):
        mg.viz.bench(mg.sum, x=np.ones(0))
    for strange in ([math.nan], (0, math.inf)):
        with pytest.raises(mg.MinigradError, match="1 number for the sliders of tanh"):
            mg.viz.bench(mg.tanh, x=strange)
    with pytest.raises(mg.MinigradError, match="bench: f returns 0 floats: tuple"):
        mg.viz.bench(lambda x: (1, x > 0))
    with pytest.raises(mg.MinigradError, match=r"x=\(2, 1\) is not a range"):
        mg.viz.bench(mg.tanh, x=(2, 1))
    assert len(mg.viz.bench(mg.nn.Linear(2, 2), x=[1.0, 2.0]).knobs) > 2  # the inputs are those of its forward
    with pytest.raises(mg.MinigradError, match="tanh has no input y"):
        mg.viz.bench(mg.tanh, y=(0, 1))
    with pytest.raises(mg.MinigradError, match="f returns 0 floats: bool"):
        mg.viz.bench(lambda x: x > 0)
    with pytest.raises(mg.MinigradError, match="bench needs a function"):
        mg.viz.bench(mg.ones(2))


def test_inputs_of_any_kind_have_sliders():
    book = mg.viz.bench(lambda a, b: a * b, a=np.ones(()), b=(0, 1))
    assert [knob.name for knob in book.knobs] == ["a", "b", "gradient"]
    assert "d=" in "".join(book.pages[0][0].drawing.pieces)  # curves, and no table


def test_kernels_are_the_second_page_at_every_setting():
    book = mg.viz.bench(mg.tanh)
    first, second = book.pages[0]
    assert (first.name, second.name) == ("sliders", "why this kernel")
    assert {id(each[1]) for each in book.pages} == {id(second)}
    assert second.say == "tanh on cpu runs numpy.tanh: () float32 → () float32. It ran at x = 1.05."
    assert book.to_svg() == book.pages[book.opening][0].drawing.to_svg(book.title)
    assert book.text().splitlines()[1:] == [second.say]


@pytest.mark.slow
def test_several_calls_have_a_page_each():
    names = [page.name for page in mg.viz.bench(mg.softmax, x=[1.0, 2.0]).pages[0]]
    assert names[:3] == ["sliders", "1. max", "2. subtract"]

    def long(x):
        for _ in range(9):
            x = x + 1
        return x + x * x

    book = mg.viz.bench(long)
    assert len(book.pages[0]) == 4 and "numpy.add, 9 times: () float32, () float32 → " in book.pages[0][1].say


def test_a_compiled_function_has_sliders_and_the_kernels_of_eager_mode():
    book = mg.viz.bench(mg.jit(lambda x: x * x), x=(0, 1))
    assert repr(book).startswith("<f on the bench")
    _, kernel = book.pages[0]
    assert kernel.name == "why this kernel" and "multiply on cpu" in kernel.say


def test_a_jitted_step_shows_its_kernels_in_eager_mode_and_modules_are_one_level():
    net = mg.nn.Sequential(mg.nn.Sequential(mg.nn.Linear(2, 2)))

    class Step:
        @mg.jit
        def step(self, x):
            return net(x)

    for f in (mg.jit(net), Step().step):
        book = mg.viz.bench(f, mg.ones((1, 2)))
        assert "operation by operation" in repr(book) and "on cpu runs" in book.text()
        parts = parts_of(book, next(i for i, [page] in enumerate(book.pages) if "matmul" in page.say))
        assert "module" in parts and ("module", "module") not in set(pairwise(parts))


# why this kernel ------------------------------------------------------------------------------------------------------


def parts_of(book, call=0):
    """The parts of the levels of a call, as they are drawn."""
    return re.findall('pointer-events="none">([^<]*)</text><text [^>]*font-weight="600"',
                      "".join(book.pages[call][0].drawing.pieces))


def decided(book, call=0):
    """What each level decides; of levels with the same name, the last one."""
    return dict(next(block["rows"] for heading, (_, block) in book.pages[call][0].blocks if "decided" in heading))


def test_each_level_gives_a_reason():
    x, big = mg.asarray([[1], [2]]), mg.ones((300, 300))
    book = mg.viz.bench(lambda: (
        mg.tanh(x) + mg.ones(3),
        mg.ones((2, 3)).T * 2,
        mg.exp(big),
    ))
    lines = [line for line in book.text().splitlines() if line[0].isdigit()]
    assert "It is for an operation that needs float32." in decided(book)["dispatch"], "tanh"
    assert "(2, 1) and (3,) broadcast to (2, 3) by strides of 0: no copy." in decided(book, 3)["the primitive"]
    assert lines[5].startswith("6. permute_dims") and "nothing is computed or copied" in decided(book, 5)["kernel"]
    assert "the device provides" in decided(book, 7)["kernel"]
    assert decided(book, 7)["dispatch"].startswith("the general path")
    assert decided(book, 3)["dispatch"].startswith("the fast path")
    assert "needs" not in decided(book, 1)["dispatch"] and "(2, 1) int64 → (2, 1) float32" in lines[0]


@pytest.mark.parametrize(
    ("function", "level", "says"),
    [
        (lambda x: x.to("cpu") * 2, "dispatch", "inputs of one type. A Python number takes the type of the tensor."),
        (lambda x: x * mg.ones(3), "dispatch", "the fast path: eager, one device, inputs of one type."),
        (lambda x: mg.asarray(x, dtype=mg.float64) * 2.0, "dispatch", "the general path"),
        (lambda x: mg.sum(x), "the primitive", "reduce, the same for all devices, with gradient rules for x"),
        (lambda x: mg.sum(x), "the primitive", "Attributes: axis = (0, 1)"),
        (lambda x: x.T, "kernel", "a view of the input: nothing is computed or copied"),
        (lambda x: x.T.reshape((6,)), "kernel", "a view can't have this order of elements"),
        (lambda x: mg.ones(2), "kernel table", "On cpu, device.kernels['full'] is"),
        (lambda x: x.copy().__iadd__(1), "operation", "It calls the kernel directly"),
        (lambda x: x.copy().__iadd__(1), "kernel", "in place: it writes over its first input"),
        (lambda x: mg.scan(lambda c, row: (c + row, row), mg.zeros(3), x), "control", "Python runs its rounds"),
        (lambda x: mg.exp(x * np.nan), "kernel", "in new memory"),
        (lambda x: mg.exp(x[:0]), "kernel", "in new memory"),
    ],
)
def test_a_call_says_what_is_decided(function, level, says):
    book = mg.viz.bench(function, mg.ones((2, 3)))
    assert says in decided(book, -1)[level]


def test_a_branch_that_runs_is_the_only_one_with_calls():
    x = mg.ones(3)
    book = mg.viz.bench(lambda: mg.cond(mg.asarray(True), lambda v: v * 2, lambda v: v + 1, x))
    assert book.text().startswith("1. multiply on cpu") and len(book.knobs[0].settings) == 1


def test_a_call_in_a_branch_says_what_was_asked():
    x = mg.asarray([1.0, 2.0])

    def halved_if_large(x):
        return mg.cond(x.sum() > 1, lambda v: v / 2, lambda v: v * 2, x)

    book = mg.viz.bench(halved_if_large, x)
    assert decided(book, -1)["control"] == "In eager mode only one branch runs: x.sum() > 1 was true."
    assert "control" not in decided(book, 0)


def test_a_call_in_a_branch_has_a_path_of_its_own_that_begins_at_the_condition():
    book = mg.viz.bench(lambda x: mg.cond(x.sum() > 0, lambda x: (x * x).sum(), lambda x: x, x), mg.ones(2))
    assert book.knobs[0].settings[0] == "1. sum: x.sum()" and book.knobs[0].settings[3] == "4. sum: (x * x).sum()"
    codes = [(heading, block["text"][block["line"] - block["first"]][slice(*block["span"])])
             for heading, (kind, block) in book.pages[3][0].blocks[-7:] if kind == "code" and block["span"]]
    assert codes[0][0].startswith("control, ") and codes[0][1].startswith("mg.cond(x.sum() > 0")
    assert codes[1][0].startswith("your line") and codes[1][1] == "(x * x).sum()"


def test_code_is_cut_only_at_the_border():
    x, rather, much = mg.ones((2, 2)), mg.ones((2, 2)), mg.ones((2, 2))
    drawn = mg.viz.bench(lambda: x @ (rather + 1.0) @ (much + 1.0)).to_svg()
    assert "book" not in drawn and "(much + 1.0)" in drawn and "# type" not in drawn


def test_a_call_names_the_device_of_its_inputs():
    mg.ones(1, device="cpu:1")
    book = mg.viz.bench(lambda: (mg.tanh(mg.ones(3, device="cpu:1")) * 2).to("cpu"))
    assert decided(book, 1)["kernel table"].startswith("On cpu:1, device.kernels['tanh'] is ")


def test_registered_kernels_are_shown():
    def mine(x):
        return np.tanh(x)

    with mg.devices.register_kernel("tanh", "cpu", mine):
        book = mg.viz.bench(mg.tanh, mg.ones(2))
    assert "tanh on cpu runs mine *" in book.text()
    assert "is mine * (registered)." in decided(book)["kernel table"]
    assert "return np.tanh(x)" in str(book.data())


def test_a_function_of_the_library_begins_at_the_line_that_calls_the_view():
    book = mg.viz.bench(mg.tanh, mg.ones(2))
    assert parts_of(book) == ["your line", "dispatch", "the primitive", "kernel table", "kernel"]
    assert ">test_a_function_of_the_library_begins_at_the_line_that_calls_the_view<" in book.to_svg()


def test_a_call_goes_from_the_line_to_the_kernel():
    layer, x = mg.nn.Linear(3, 2), mg.ones((1, 3))
    book = mg.viz.bench(lambda: layer(x))
    product = next(i for i, [page] in enumerate(book.pages) if "matmul" in page.say)
    assert parts_of(book, product) == [
        "your line", "module", "operation", "operation", "dispatch", "the primitive", "kernel table", "kernel"]
    assert "Linear.forward" in str(book.pages[product][0].drawing.pieces)


@mg.custom_vjp
def halved(x):
    return x / 2


halved.gradient(lambda kept, g: (g / 2,))


@pytest.mark.parametrize(
    ("function", "file", "line"),
    [
        (mg.sum, "devices/reductions.py", "def sum("),
        (lambda x: x.reshape((1, 2)), "devices/kernel_table.py", "def reshape("),
        (lambda x: x[1:], "devices/kernel_table.py", "def slice("),
        (lambda x: halved(mg.sum(x)).reshape((1,)), "devices/kernel_table.py", "def reshape("),
    ],
)
def test_a_call_shows_the_definition_of_its_kernel(function, file, line):
    call = watched(function)[-1]
    (found,) = [level.code for level in levels_of(call) if level.part == "kernel"]
    assert found["file"] == file and found["text"][found["line"] - found["first"]].strip().startswith(line)


@pytest.mark.parametrize("name", TEN)
def test_each_highlighted_line_is_a_definition_or_runs(name):
    function, *args = TEN[name]()
    with watching() as calls:
        not_jitted(function)(*args)
    for path in paths_of(calls, len(calls)):
        frames = {line_of(where)[1] for where in path.call.frames}
        for level in [level for level in path.levels if level.code]:
            defines = re.search(rf"\bdef |\bclass |\blambda |^{path.call.op.name} = ", line_in(level))
            assert defines or level.code["line"] in frames, (path.runs, level)


def watched(function):
    x = mg.ones(2)
    with watching() as calls:
        function(x)
    return calls


@pytest.fixture
def loud(monkeypatch):
    """`loud(kernels)` registers a device that has this class of kernels, for one test."""
    monkeypatch.setattr(registry, "MAKERS", dict(registry.MAKERS))

    def registered(kernels):
        mg.devices.register_device("loud", type("Loud", (Device,), {"kind": "loud", "kernel_class": kernels}))

    yield registered
    registry.DEVICES.pop("loud", None)


def test_a_call_shows_the_class_of_a_custom_device(loud):
    class Doubled(Kernels):
        def tanh(self, x):
            return super().tanh(x) * 2

    loud(Doubled)
    ((page,),) = mg.viz.bench(mg.tanh, mg.ones(2, device="loud")).pages
    shown = [heading for heading, block in page.blocks[5:] if "return super().tanh(x) * 2" in str(block)]
    assert shown == ["kernel, tests.tanh"]


@pytest.mark.slow
def test_a_class_of_kernels_without_source_has_no_line(loud):
    made = {}
    exec("class Typed(Kernels):\n    def tanh(self, x):\n        return x", {"Kernels": Kernels}, made)
    loud(made["Typed"])
    assert "loud × tanh" in mg.viz.bench(mg.tanh, mg.ones(2, device="loud")).to_svg()


def test_composed_functions_run_operation_by_operation():
    with mg.eager_programs():
        says = mg.viz.bench(mg.softmax, mg.ones((20, 20))).pages[0][0].say
        alone = mg.viz.bench(mg.tanh, mg.ones(2)).pages[0][0].say
        few = mg.viz.bench(lambda x: mg.softmax(x) * 2, mg.ones(20)).pages[0][0].say
        plain = mg.viz.bench(lambda x: mg.tanh(x) * 2, mg.ones((20, 20))).pages[0][0].say
    assert "Here each operation runs alone. A plain call may run several" in OPENED
    assert OPENED in says and "compiled program" not in alone + few + plain
    with mg.eager_programs(False):
        assert "compiled program" not in mg.viz.bench(mg.softmax, mg.ones((20, 20))).pages[0][0].say


def test_an_update_of_an_optimizer_is_a_program_too():
    w = mg.zeros(200, requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=0.1)
    w.grad = mg.ones(200)
    with mg.eager_programs():
        assert OPENED in mg.viz.bench(optimizer.step).pages[0][0].say


@pytest.mark.parametrize("function", [
    lambda x: (x > 0) * x, lambda x: x.astype(mg.int32) / x.astype(mg.int32),
    lambda x: mg.where(x > 0, x.astype(mg.int32), 0.5),
    lambda x: mg.ones((300, 300), dtype=mg.int32) * mg.ones((300, 300)),
])
def test_a_cast_of_the_dispatch_says_that_the_operation_after_it_needs_it(function):
    book = mg.viz.bench(function, mg.ones((2, 3)))
    dispatched = [decided(book, i)["dispatch"] for i in range(len(book.pages))]
    says = ["It is for an operation that needs float32." in each for each in dispatched]
    casts = ["astype" in page.name and page.say.endswith("float32.") for (page,) in book.pages]
    assert says == casts and any(says)


def test_a_copy_is_no_cast_and_a_large_tensor_not_small():
    big = mg.ones((300, 300))
    book = mg.viz.bench(lambda x: (x.copy() * 2, big.T), mg.ones(2))
    copied, large = decided(book, 1)["dispatch"], decided(book, 2)["dispatch"]
    assert "needs" not in copied
    assert large.startswith("the fast path") and "small" not in large


def test_a_function_with_a_gradient_of_its_own_is_the_kernels_that_it_calls():
    """It was one operation and one kernel, whose page explained nothing."""
    @mg.custom_vjp
    def halved(x):
        return x / 2

    halved.gradient(lambda kept, g: (g / 2,))

    book = mg.viz.bench(lambda x: halved(x) + 1, mg.ones(2))
    assert book.knobs[0].settings == ("1. divide: x / 2", "2. add: halved(x) + 1") and "call" not in book.text()
    (knob,) = mg.viz.bench(mg.grad(lambda x: halved(x).sum()), mg.ones(2)).knobs
    head = knob.groups[next(i for i, name in enumerate(knob.settings) if ". divide: ∂" in name)]
    assert head.startswith("backward"), "a gradient that is the user's own code is of the backward pass too"


def test_a_compiled_function_and_its_gradient_are_programs_that_ran_too():
    """With a history, such a program was an operation with a kernel, and without one it was not counted."""
    layer = mg.jit(lambda x, w: mg.tanh(x @ w))
    w = mg.ones((2, 2), requires_grad=True)
    says = [page.say for (page,) in mg.viz.bench(lambda x: layer(x, w).sum().backward(), mg.ones((2, 2))).pages]
    assert says[0].startswith("1. sum") and all("Compiled programs ran too" in text for text in says)
    assert not any("its own" in text or "call on" in text for text in says)


def test_a_program_that_is_compiled_meanwhile_shows_the_kernels_of_its_constants():
    step, *args = TEN["mlp"]()
    assert "full on cpu runs" in mg.viz.bench(lambda: step(*args)).text()


def test_programs_that_ran_beside_the_calls_are_counted():
    f = mg.jit(lambda x: mg.tanh(x) + 1)
    book = mg.viz.bench(lambda x: f(x) * 2, mg.ones(3))
    assert book.text().startswith("1. multiply on cpu") and len(book.pages) == 1
    assert "Compiled programs ran too: mg.viz.fusion shows the kernels of jitted functions." in book.text()


def test_the_bench_puts_back_what_a_step_writes():
    w = mg.ones((3, 3), requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=0.1)

    def step(x):
        loss = mg.cond(x.sum() > 0, lambda x: (x @ w.T).sum(), lambda x: x.sum() * 2, x)
        loss.backward()
        optimizer.step()

    before = w.tolist()
    assert "(8 operations, 5 views, 8 kernels)" in repr(mg.viz.bench(step, mg.ones((2, 3)))) and w.tolist() == before
    assert "minigrad's own matmul (it calls numpy)" in mg.viz.bench(lambda x: x @ w, mg.ones((2, 3))).text()


def test_of_a_line_with_two_products_the_one_of_the_page_is_marked():
    book = mg.viz.bench(lambda x: x * 2 - 3 * x, mg.ones(2))
    marked = []
    for (page,) in book.pages[:2]:
        code = next(block for heading, (_, block) in page.blocks if heading.startswith("your line"))
        begin, end = code["span"]
        marked.append(code["text"][code["line"] - code["first"]][begin:end])
    assert marked == ["x * 2", "3 * x"]


def test_the_box_of_the_kernel_table_has_its_entry():
    """Its code was that of the kernel once more, or a line that only renames one of NumPy."""
    for function, entry in ((lambda x: x @ x, "matmul"), (mg.tanh, "numpy.tanh")):
        page = mg.viz.bench(function, mg.ones((2, 2))).pages[0][0]
        assert f"] is {entry}.</text>" in page.drawing.to_svg("")
        headings = [heading for heading, (kind, _) in page.blocks if kind == "code"]
        assert not [heading for heading in headings if heading.startswith("kernel table")]


def test_keyword_arguments_belong_to_the_call():
    assert "axis = (1,)" in decided(mg.viz.bench(mg.sum, mg.ones((2, 3)), axis=1))["the primitive"]


def test_a_function_runs_once():
    runs = set()  # of lists, a view takes back what the function appends

    def counting(x):
        runs.add(len(runs))
        return x + 1

    mg.viz.bench(counting, mg.ones(2))
    assert len(runs) == 1


def test_calls_of_a_loop_have_one_page_and_long_functions_pages_for_the_first_calls():
    def long(x):
        for _ in range(130):
            x = x + 1
        return mg.exp(x)

    book = mg.viz.bench(long, mg.ones(2))
    assert repr(book) == "<why these kernels run, operation by operation (131 operations, 0 views, 2 kernels)>"
    assert book.knobs[0].settings == ("1. add × 130: x + 1", "2. exp: mg.exp(x)")
    assert "add runs numpy.add, 130 times" in book.text().replace("on cpu ", "")
    ((page,),) = pages_in(long)
    assert "Only 1 of 132 calls have pages." in page.say


def pages_in(function):
    """The pages of the first path alone."""
    with watching() as calls:
        function(mg.ones(2))
    return [pages_of(calls, paths_of(calls, 1), "")]


def test_values_and_functions_without_operations_are_refused():
    with pytest.raises(mg.MinigradError, match="bench needs a function, and a Tensor is not one"):
        mg.viz.bench(mg.ones(2), mg.ones(2))
    with pytest.raises(mg.MinigradError, match="no operation ran"):
        mg.viz.bench(lambda: 3)
    jitted = mg.jit(lambda x: x + 1)
    with pytest.raises(mg.MinigradError, match="no operation ran") as error:
        mg.viz.bench(lambda x: jitted(x), mg.ones(2))
    assert "mg.viz.fusion shows the kernels of jitted functions" in str(error.value)
    dropped = mg.jit(lambda x: mg.nn.Dropout(0.5)(x) + 1)
    dropped(mg.ones(4))
    assert "Compiled programs ran too" in mg.viz.bench(lambda x: dropped(x), mg.ones(4)).text()


def test_inputs_that_an_operation_refuses_are_an_error_of_the_bench():
    with pytest.raises(mg.MinigradError, match="matmul does not take these inputs: matmul: a matrix has") as error:
        mg.viz.bench(mg.matmul)
    assert "arrays by the names of the inputs" in str(error.value)


def test_the_first_page_is_that_of_the_kernel_with_most_operations():
    book = mg.viz.bench(lambda x: mg.tanh((x + 1) @ x).sum(), mg.ones((8, 8)))
    assert "matmul on cpu" in book.pages[book.opening][0].say


def test_of_a_training_step_the_first_page_is_a_kernel_of_the_forward_pass():
    w, x = mg.ones((8, 8), requires_grad=True), mg.ones((8, 8))
    optimizer = mg.optim.SGD([w])

    def train():
        ((x @ w) @ w).sum().backward()
        optimizer.step()

    book = mg.viz.bench(train)
    (knob,) = book.knobs
    assert [*dict.fromkeys(knob.groups)] == ["forward", "backward", "update"]
    assert "matmul" in knob.settings[knob.start] and knob.groups[knob.start].startswith("forward")
    train()
    assert "multiply" in mg.viz.bench(optimizer.step).knobs[0].settings[0]
    assert mg.viz.bench(lambda: (x @ x).sum()).knobs[0].groups == ()


def test_entries_of_the_list_that_read_alike_have_what_tells_them_apart():
    attention = mg.nn.MultiheadAttention(4, 2)
    names = mg.viz.bench(lambda x: attention(x, x, x)[0], mg.ones((1, 3, 4))).knobs[0].settings
    assert len({name.partition(". ")[2] for name in names}) == len(names)
    assert any("softmax(scores) ← " in name for name in names)
    net = mg.nn.Sequential(mg.nn.LayerNorm(4), mg.nn.Sequential(mg.nn.LayerNorm(4)))
    names = mg.viz.bench(lambda x: net(x), mg.ones((1, 4))).knobs[0].settings
    found = [name.partition(". ")[2] for name in names if "pow: " in name]
    assert found == ["pow: 0 LayerNorm ← net(x)", "pow: 1[0] LayerNorm ← net(x)"], "as in mg.viz.fusion"
    names = mg.viz.bench(lambda x: mg.tanh(x.T) + mg.tanh(x.sum(axis=0)), mg.ones((2, 2))).knobs[0].settings
    assert len({name.partition(". ")[2] for name in names}) == len(names)
    names = mg.viz.bench(lambda x: mg.exp(mg.tanh(x)), mg.ones(2)).knobs[0].settings
    assert all("←" not in name for name in names), "an operation that the line has once needs no more"


def test_the_list_has_the_expressions_of_the_user():
    def program(x, y):
        y += 1e-3 * (
            x * y)
        return 2 * x - mg.tanh(y) * 2  # of both

    names = mg.viz.bench(program, mg.ones(2), mg.ones(2)).knobs[0].settings
    assert [name.partition(": ")[2] for name in names] == [
        "x * y", "0.001 * (x * y)", "y + 0.001 * (x * y)", "2 * x", "mg.tanh(y)", "mg.tanh(y) * 2",
        "2 * x - mg.tanh(y) * 2",
    ]


def test_calls_of_one_line_of_the_library_have_paths_of_their_own():
    names = mg.viz.bench(mg.nn.GELU("tanh"), mg.ones(2)).knobs[0].settings
    assert [name.partition(": ")[2].partition(" ← ")[0] for name in names if "multiply" in name][:3] == [
        "x * x", "x * x * (0.044715 * scale)", "x * (x * x * (0.044715 * scale) + scale)",
    ]


def test_the_list_names_a_module_in_full_if_all_calls_are_in_one():
    def block():
        return mg.nn.Sequential(mg.nn.Linear(2, 2), mg.nn.Tanh())

    net = mg.nn.Sequential(block(), block())
    w = mg.ones((2, 2), requires_grad=True)
    names = mg.viz.bench(lambda x: (net(x) @ w).sum().backward(), mg.ones((1, 2))).knobs[0].settings
    assert not any(re.search("[:←] 0 Linear", name) for name in names)
    found = [name.partition(". ")[2] for name in names]
    assert "matmul × 2: ∂(net(x))" in found and "matmul: 1[0] Linear ← ∂(net(x))" in found


def test_the_list_is_in_the_order_of_the_calls_also_where_a_phase_comes_again():
    """The forward calls after a gradient stood before it, as numbers 1 and 2 of the list."""
    def program(x):
        return (mg.grad(lambda x: mg.tanh(x).sum())(x) ** 2).sum()

    (knob,) = mg.viz.bench(program, mg.ones(2)).knobs
    names = [name.partition(". ") for name in knob.settings]
    assert [int(number) for number, _, _ in names] == [*range(1, len(names) + 1)] and knob.name == "call"
    assert names[0][2] == "tanh: mg.tanh(x)" and names[-1][2].startswith("sum: (mg.grad(")
    last = len(names)
    runs = [(phase, len([*run])) for phase, run in groupby(knob.groups)]
    assert runs == [("forward", 2), ("backward", last - 4), ("forward", 2)]


def test_calls_of_a_gradient_and_of_a_tangent_are_named_after_your_expression():
    """They were `op.apply(*primals, **attrs)` and `pushed_forward(op, primals, tangents, out, attrs)`."""
    def program(x):
        slope = mg.grad(lambda x: (mg.tanh(x) * x).sum())
        return mg.jvp(slope, (x,), (x,))[1]

    names = [name.partition(". ")[2] for name in mg.viz.bench(program, mg.ones(2)).knobs[0].settings]
    assert len({*names}) == len(names) and not any("tangents" in name or "apply(" in name for name in names)
    assert {"tanh: mg.tanh(x)", "sum: (mg.tanh(x) * x).sum()", "sum: tangent of (mg.tanh(x) * x).sum()",
            "subtract: ∂(mg.tanh(x))", "negative: tangent of ∂(mg.tanh(x))"} <= {*names}
    products = [name for name in names if name.endswith(" ← ∂(mg.tanh(x) * x)")]
    assert [name.partition(" ← ")[0] for name in products] == ["multiply: multiply(g, y)", "multiply: multiply(g, x)"]


def test_a_tangent_stays_in_its_chart():
    book = mg.viz.bench(mg.tanh, x=(-2, 2))
    chart = re.search(r'<rect x="([\d.]+)"[^>]*', book.pages[0][0].drawing.pieces[2])[1]
    for page in (book.pages[0][0], book.pages[-1][0]):
        tangent = re.search('<path d="([^"]*)"', page.drawing.pieces[3])[1]
        across = [float(x) for x in re.findall(r"[ML](-?[\d.]+) ", tangent)]
        assert min(across) >= float(chart) and max(across) <= page.drawing.width + 0.5 and len({*across}) > 2


def test_each_call_has_a_sentence_of_its_own_to_be_read_aloud():
    pages = [page.say for (page,) in mg.viz.bench(lambda x: x * 2 - 3 * x, mg.ones(2)).pages]
    assert len({*pages}) == len(pages) == 3


def test_each_box_of_a_call_leads_to_its_code():
    def program():
        return mg.tanh(mg.ones(2))

    page = mg.viz.bench(program).pages[-1][0]
    codes = [heading for heading, (kind, _) in page.blocks if kind == "code"]
    leads = re.findall(r'data-go="code:(\d+)"[^>]*aria-label="code of ([^"]*)"', page.drawing.to_svg(""))
    assert [codes[int(i)].partition(", ")[2] for i, _ in leads] == [name for _, name in leads] and len(leads) > 2


def test_the_box_of_a_kernel_has_its_types_alone():
    book = mg.viz.bench(lambda x: x @ x, mg.ones((300, 300)))
    drawn = book.to_svg()
    assert "(300, 300) float32, (300, 300) float32<" in drawn and "→ (300, 300) float32<" in drawn, "none is cut"
    assert "in new memory" not in drawn


def test_the_list_of_a_program_has_the_lines_and_all_of_the_update():
    w = mg.zeros((2, 2), requires_grad=True)
    optimizer = mg.optim.Adam([w])

    def train(xs):
        loss = mg.zeros(())
        for n in range(1, 200):
            loss = loss + mg.tanh(xs[:n] @ w).sum()
        loss.backward()
        optimizer.step()

    names = mg.viz.bench(train, mg.ones((200, 2))).knobs[0].settings
    assert len(names) < 100 and any("tanh × 199: mg.tanh(xs[:n] @ w)" in name for name in names)
    assert any(name.endswith("matmul × 199: ∂(xs[:n] @ w)") for name in names)
    assert any("sqrt: " in name and name.endswith(" ← optimizer.step()") for name in names)


def test_the_first_page_is_that_of_a_kernel_that_computes():
    book = mg.viz.bench(lambda x: mg.tanh(x.T + mg.ones(2)), mg.ones((2, 2)))
    assert [page.say.split(" on ")[0] for [page] in book.pages][:3] == ["1. permute_dims", "2. full", "3. add"]
    assert book.opening == 2


def test_a_function_may_use_parameters():
    net = mg.nn.Linear(2, 2)
    book = mg.viz.bench(lambda x: (net(x) ** 2).sum(), x=[1.0, 2.0])
    assert [check[0] for check in checks(book)] == ["✓", "✓"]


def test_operations_without_a_slope_pass_zeros_back():
    assert "it passes back 0 to x" in mg.viz.bench(mg.floor).text()
    book = mg.viz.bench(lambda a, b: mg.where(a > 0, b, 2 * b))
    assert "it passes back 0 to a, 1 to b" in book.text() and numbers(book, book.opening)[0] == ["a", "0", "✓ 0"]
    assert repr(mg.viz.bench(lambda x: x * x)).startswith("<f on the bench: ")


def test_numbers_beyond_floats_are_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mg.viz.bench(mg.exp, x=(-200, 800)).data()


def test_a_device_that_begins_in_the_call_is_refused():
    registry.DEVICES.pop("cpu:7", None)
    try:
        with pytest.raises(mg.MinigradError, match="cpu:7 was first used in this call"):
            mg.viz.bench(lambda: mg.ones(2, device="cpu:7"))
        assert "full on cpu:7 runs minigrad's own full" in mg.viz.bench(lambda: mg.ones(2, device="cpu:7")).text()
    finally:
        registry.DEVICES.pop("cpu:7", None)


def test_calls_that_differ_only_in_their_types_have_different_lines():
    x, y = mg.ones(3), mg.ones(3, dtype="int32")
    (knob,) = mg.viz.bench(lambda: [mg.relu(v) for v in (x, y)]).knobs
    lines = [line.partition(". ")[2] for line in knob.settings]
    assert len({*lines}) == len(lines) and any("int32" in line for line in lines)


def test_types_are_those_of_all_calls_or_said_to_be_the_first():
    """A line of the list had the types of the first call alone, and named none of them."""
    def layers(x):
        for n in (2, 3, 3):
            x = mg.ones((n, len(x))) @ x
        return [mg.tanh(x) for _ in range(2)]

    names = mg.viz.bench(layers, mg.ones((4, 5))).text().splitlines()
    (product,) = [line for line in names if "matmul" in line]
    assert "3 times: the first (2, 4) float32, (4, 5) float32 → (2, 5) float32" in product
    (tanh,) = [line for line in names if "tanh" in line]
    assert tanh.endswith("tanh on cpu runs numpy.tanh, 2 times: (3, 5) float32 → (3, 5) float32")


def test_what_is_decided_of_several_calls_is_that_of_the_first():
    def several(x):
        for n in (1, 2):
            x = x + mg.ones(n)
        return mg.tanh(x)

    *_, add, tanh = [dict(page.blocks) for (page,) in mg.viz.bench(several, mg.ones(2)).pages]
    assert "decided on the way of the first call" in add and "decided on the way" in tanh


def test_a_cast_that_is_written_in_the_source_is_no_decision_of_the_dispatch():
    book = mg.viz.bench(lambda x: mg.sum((x > 0).astype(mg.float32)), mg.ones(3))
    says = [decided(book, i)["dispatch"] for i in range(3)]
    assert not any("needs" in each for each in says)


def test_views_that_copy_have_a_path_of_their_own():
    """Among ten reshapes that were said to be views, two copied: no page said which."""
    def both(x):
        return [y.reshape((6,)) for y in (x, x.T, x)]

    book = mg.viz.bench(both, mg.ones((2, 3)))
    views, copies = [i for i, [page] in enumerate(book.pages) if "reshape" in page.name]
    assert book.pages[views][0].name.endswith("reshape × 2") and "nothing is" in decided(book, views)["kernel"]
    assert book.pages[copies][0].name.endswith("reshape (copy)") and "in new memory" in decided(book, copies)["kernel"]


def test_a_view_of_no_elements_copies_nothing():
    book = mg.viz.bench(lambda x: x[:0].T.reshape((0,)), mg.ones((2, 3)))
    assert "(0 operations, 3 views, 3 kernels)" in repr(book)


def test_the_formula_of_a_permutation_has_its_axes():
    def formula(axes):
        return dict(mg.viz.bench(lambda x: mg.permute_dims(x, axes), mg.ones((1,) * len(axes))).pages[0][0].blocks)[
            "what permute_dims(x) computes"][1]

    assert "2" in formula((0, 2, 1)) and "<mi>T</mi>" not in formula((0, 2, 1)) and formula((1, 0)) != formula((0, 1))


@pytest.mark.parametrize("length", [2, 3])
def test_the_parts_of_a_scan_are_counted(length):
    """`split`, which gives a scan its rows, was one operation, and hid a slice and a copy for each."""
    x = mg.ones((length, 2), requires_grad=True)
    names = mg.viz.bench(lambda: mg.scan(lambda c, row: (c + row, c), mg.zeros(2), x)).text()
    assert f"slice on cpu runs minigrad's own slice (it calls numpy), {length} times" in names
    assert f"astype on cpu runs minigrad's own astype (it calls numpy), {length} times: (2,)" in names


def test_a_level_of_forward_mode_stands_for_the_dispatch_to_it():
    """There were two decisions of the dispatch, which contradicted each other."""
    def f(x):
        return mg.jvp(mg.grad(lambda x: (mg.tanh(x) * x * x).sum()), (x,), (mg.ones(6),))[1]

    book = mg.viz.bench(f, mg.ones(6))
    for i, (page,) in enumerate(book.pages[1:], 1):
        rows = next(block["rows"] for heading, (_, block) in page.blocks if "decided" in heading)
        assert ["forward mode", "It computes a tangent beside each value."] in rows
        assert [part for part, _ in rows].count("dispatch") == 1
        parts = parts_of(book, i)
        assert len(parts) <= 11, "the levels fit in a window, without a scroll"
        assert all(a != b or a == "operation" for a, b in pairwise(parts))


def test_no_level_has_the_code_of_another_one():
    """The box of the primitive had the function that was passed as an operation."""
    book = mg.viz.bench(lambda x: x @ x, mg.ones((2, 2)))
    codes = [str(block["text"]) for _, (kind, block) in book.pages[0][0].blocks if kind == "code"]
    assert len({*codes}) == len(codes) and "def _infer_matmul" in str(codes)


def test_hostile_names_do_no_harm():
    made = {}
    name = "</script><img onerror>"
    exec(compile("def f(x):\n    return x + 1", name, "exec"), made)
    made["f"].__code__ = made["f"].__code__.replace(co_qualname=name, co_name=name)
    book = mg.viz.bench(made["f"], mg.ones(2))
    assert name not in book.to_html() and "&lt;/script&gt;&lt;img onerror&gt;" in book.to_svg()


@pytest.mark.parametrize("old", ["dispatch", "stack"])
def test_old_names_lead_to_the_bench(old):
    with pytest.raises(AttributeError, match=rf"no view mg.viz.{old} any more") as error:
        getattr(mg.viz, old)
    assert "mg.viz.bench(f, x)" in str(error.value)


def test_machine_code_that_runs_in_place_of_a_kernel_is_named():
    """A page named the kernel of the table, also where the device ran machine code in its place."""
    pytest.importorskip("llvmlite")

    def normalized(x, middle):
        return mg.sum(x - middle, axis=(0, 2, 3)), x * x, mg.sum(middle), [y - middle for y in (x, x[:1])]

    book = mg.viz.bench(normalized, mg.ones((8, 32, 16, 32)), mg.ones((1, 32, 1, 1)))
    says = [page.say.split(" runs ")[1].split(": ")[0] for (page,) in book.pages]
    assert says == [
        "machine code in place of numpy.subtract", "minigrad's own sum (it calls machine code)", "numpy.multiply",
        "minigrad's own sum (it calls numpy)", "minigrad's own slice (it calls numpy)",
        "machine code in place of numpy.subtract", "numpy.subtract",
    ]
    assert "machine code in place of numpy.subtract" in book.to_svg()
    assert decided(book)["kernel table"] == "On cpu, device.kernels['subtract'] is numpy.subtract."


def test_own_code_is_not_shown_where_machine_code_ran_in_its_place():
    pytest.importorskip("llvmlite")
    (page,), = mg.viz.bench(mg.sigmoid, mg.ones((300, 300), dtype=mg.float64)).pages
    assert "runs machine code in place of sigmoid: " in page.say
    assert not any(heading.startswith("kernel, ") for heading, _ in page.blocks)


def test_the_general_path_says_what_is_true_of_each_call_on_it():
    """It was said to be for casts, threads and other modes, of a product of large matrices and of a gather."""
    def both(x, places):
        return x @ x, x[places], x.astype(mg.float64) * 2

    book = mg.viz.bench(both, mg.ones((300, 300)), mg.asarray([0, 1]))
    general = [decided(book, i)["dispatch"] for i in range(4) if "astype" not in book.pages[i][0].name]
    assert all(says.startswith("the general path: any number, size and type of inputs.") for says in general)


@pytest.mark.parametrize("number", [0.5, 0.1, 1e-3, 3, 0.0])
def test_each_python_number_has_its_rule(number):
    """0.1 had none, because the array that the device keeps for it holds 0.10000000149."""
    book = mg.viz.bench(lambda x: number * x, mg.ones(2))
    assert "A Python number takes the type of the tensor." in decided(book)["dispatch"]


def test_a_tensor_with_the_value_of_a_number_is_none():
    tenth = mg.asarray(0.1)
    book = mg.viz.bench(lambda x: (0.1 * x, tenth * x), mg.ones(2))
    assert "Python number" not in decided(book, 1)["dispatch"]


@pytest.mark.parametrize("number", [0.5, 0.1])
def test_a_python_number_is_not_counted_as_read(number):
    tensor = mg.asarray(2.0)
    with watching() as calls:
        number * tensor
    assert calls[0].count.bytes == 8, "one number is read, and one is written"


def test_lines_of_the_list_name_the_function_where_two_write_the_same():
    """The sums of a norm in two functions had the same line."""
    norm = mg.nn.LayerNorm(4)

    def first(x):
        return norm(x) * 2

    def second(x):
        x = norm(x) + mg.tanh(x)
        return mg.tanh(x)

    names = mg.viz.bench(lambda x: second(first(second(first(x)))), mg.ones((2, 4))).knobs[0].settings
    lines = [name.partition(". ")[2] for name in names]
    assert len({*lines}) == len(lines)
    start = first.__code__.co_firstlineno
    assert f"pow × 2: norm(x) ← first, line {start + 1}" in lines
    assert f"tanh × 2: mg.tanh(x) ← second, line {start + 5}" in lines


def test_a_line_of_the_list_has_the_innermost_expression_of_a_module():
    """The parts of an LSTM's gates were `f(carry.rebuild(now), …`."""
    layer = mg.nn.LSTM(5, 8)
    names = mg.viz.bench(lambda x: layer(x)[0], mg.ones((7, 3, 5))).knobs[0].settings
    assert any(name.endswith("slice × 28: split(row + recurrent, 4, axis=-1) ← layer(x)") for name in names)
    assert not any("rebuild" in name for name in names)


def test_what_control_flow_says_is_true_before_and_after_the_rounds():
    book = mg.viz.bench(lambda x: mg.scan(lambda c, row: (c + row, row), mg.zeros(3), x), mg.ones((2, 3)))
    says = [decided(book, i).get("control") for i in range(len(book.pages))]
    assert {*says} == {None, "In eager mode, Python runs its rounds, or one branch."}


def test_an_index_reads_as_the_code_writes_it():
    book = mg.viz.bench(lambda x: x[:, 0:2], mg.ones((2, 3)))
    assert "Attributes: index = [:, 0:2]." in decided(book)["the primitive"]
