"""The library in a browser's Python, which has neither threads nor timers, processes or machine code."""

import pytest

LIMITS = """
import signal, time
import pyodide_js
from pyodide.code import run_js
from minigrad_course.limits import TimeIsUp, at_most

def loop():
    while True:
        pass

def ended(function):
    begin = time.perf_counter()
    try:
        function()
    except BaseException as error:
        return type(error).__name__, time.perf_counter() - begin < 60
"""
BUFFER = 'getattr(pyodide_js._module, "Py_EmscriptenSignalBuffer", None)'


def test_a_limit_ends_a_loop_and_puts_everything_back(in_node):
    """Pyodide reads element 0 of any object.  Its documentation promises that for shared memory only."""
    said = in_node.run(LIMITS + f"""
@at_most(0.1)
def plain():
    loop()

@at_most(0.1)
def catches_the_first():
    try:
        loop()
    except BaseException:
        loop()

before = signal.getsignal(signal.SIGALRM), {BUFFER}
print(ended(plain), ended(catches_the_first))
print(before == (signal.getsignal(signal.SIGALRM), {BUFFER}))
with at_most(60):
    print("in time")
""")
    assert said == "('TimeIsUp', True) ('TimeIsUp', True)\nTrue\nin time\n"


def test_the_outer_limit_goes_on_after_an_inner_one_and_inside_of_it(in_node):
    said = in_node.run(LIMITS + """
@at_most(0.2)
def goes_on():
    try:
        with at_most(0.05):
            loop()
    except TimeIsUp:
        print("inner")
    loop()

@at_most(0.1)
def is_shorter():
    with at_most(60):
        loop()

print(ended(goes_on), ended(is_shorter))
""")
    assert said == "inner\n('TimeIsUp', True) ('TimeIsUp', True)\n"


def test_an_interrupt_of_another_buffer_arrives_inside_of_a_limit(in_node):
    said = in_node.run(LIMITS + f"""
before = {BUFFER}
theirs = run_js('''({{
    left: 1000,
    get 0() {{ this.left -= 1; return this.left == 0 ? 2 : 0; }},
    set 0(value) {{}},
}})''')
pyodide_js.setInterruptBuffer(theirs)

@at_most(60)
def stopped():
    loop()

try:
    print(ended(stopped), {BUFFER} == theirs)
finally:
    pyodide_js.setInterruptBuffer(before)
""")
    assert said == "('KeyboardInterrupt', True) True\n"


def test_a_check_stops_a_loop_and_names_the_button_of_the_page(in_node):
    said = in_node.run("""
import minigrad_course as course
from minigrad_course import session

course.begin("00_start", student="Ada")
session._task("mul_grad").__class__.seconds = 0.2
mul_grad = eval("lambda g, out, a, b: [a for a in iter(int, 1)]")
try:
    course.check("mul_grad", mul_grad)
except Exception as feedback:
    print(feedback)
""")
    assert "not done after 0.2 seconds" in said and "(The button “Stop” stops a cell)" in said


def test_a_jitted_function_runs_without_a_warning(in_node):
    said = in_node.run("""
import warnings
import minigrad as mg

with warnings.catch_warnings():
    warnings.simplefilter("error")
    print(mg.jit(lambda x: mg.tanh(x).sum() * 2)(mg.zeros(3)).item())
""")
    assert said == "0.0\n"


def test_a_view_of_eager_tensors_loads_no_compiler(in_node):
    said = in_node.run("""
import sys
import minigrad as mg

before = set(sys.modules)
x = mg.asarray([1.0, 2.0], requires_grad=True)
page = mg.viz.step((x * x + 1).sum()).to_html()
loaded = {name for name in set(sys.modules) - before if name.startswith("minigrad.compile")}
print("<script" in page, loaded)
""")
    assert said == "True set()\n"


@pytest.mark.parametrize(("code", "result"), [
    ("mg.asarray([1, 2]).dtype, mg.asarray(3).dtype", "(dtype('int64'), dtype('int64'))"),
    ("mg.argmax(x, 0).dtype, mg.argsort(x).dtype, mg.nonzero(x)[0].dtype", "(dtype('int64'),) * 3"),
    ("mg.take(x, mg.asarray([1, 0])).tolist(), mg.median(x).item()", "([1.0, 3.0], 2.0)"),
    ("x[mg.asarray([2])].tolist(), mg.topk(x, 2)[1].tolist()", "([2.0], [0, 2])"),
    ("mg.argsort(mg.reshape(mg.arange(9000.0) % 7, (3, 3000)))[0, :2].tolist()", "[0, 7]"),
    ("next(iter(mg.data.DataLoader([1, 2], 2))).dtype", "dtype('int64')"),
], ids=lambda each: each[:20])
def test_positions_have_64_bits_although_addresses_have_32(in_node, code, result):
    given = "import minigrad as mg\nfrom numpy import dtype\nx = mg.asarray([3.0, 1.0, 2.0])"
    assert in_node.run(f"{given}\nprint(({code}) == ({result}))") == "True\n"


def test_a_singular_matrix_is_an_error_although_webassembly_has_no_flags(in_node):
    said = in_node.run("""
import minigrad as mg

for factor in (mg.linalg.solve, lambda a, b: mg.linalg.cholesky(-a)):
    for size in (2, 6):
        try:
            print(factor(mg.zeros((size, size)), mg.ones(size)))
        except mg.MatrixError as error:
            print(str(error).split(":")[0])
print(mg.linalg.solve(mg.asarray([[2.0]]), mg.asarray([1.0])).tolist())
""")
    assert said == "solve\nsolve\ncholesky\ncholesky\n[0.5]\n"


def test_a_checkpoint_is_saved_and_loaded(in_node):
    said = in_node.run("""
import minigrad as mg

model, other = mg.nn.Linear(2, 3), mg.nn.Linear(2, 3)
mg.io.save_checkpoint("last.safetensors", 7, model=model)
print(mg.io.load_checkpoint("last.safetensors", model=other), bool((other.weight == model.weight).all()))
""")
    assert said == "7 True\n"


def test_what_a_browser_lacks_is_replaced_or_named(in_node):
    said = in_node.run("""
import warnings
import minigrad as mg

with warnings.catch_warnings(record=True) as caught:
    loader = mg.data.DataLoader([1, 2, 3], 2, workers=2)
print([batch.tolist() for batch in loader], "neither threads nor processes" in str(caught[0].message))
print(mg.distributed.ThreadCommunicators(3).run(lambda comm: comm.allreduce(mg.ones(1) * comm.rank).item()))
mg.devices.set_num_threads(4)
print(mg.tanh(mg.zeros(2_000_000)).sum().item(), mg.devices.set_num_threads(1))
for lacks in (lambda: mg.breakpoint(mg.ones(1)), lambda: mg.io.load_onnx("model.onnx")):
    try:
        lacks()
    except mg.MinigradError as error:
        print(*str(error).splitlines()[:2], sep="\\n")
""")
    assert said.splitlines() == [
        "[[1, 2], [3]] True", "[3.0, 3.0, 3.0]", "0.0 None",
        "breakpoint: Python's debugger reads from a terminal, and a browser has none", "  Hint: mg.print(x)",
        "load_onnx needs the package onnx, which is not installed",
        "  Hint: this browser cannot install it; on a computer, python -m pip install onnx"
        ", or: python3 course add onnx",
    ]


def test_notebooks_that_a_browser_has_kept_find_the_course_by_its_old_name(in_node):
    said = in_node.run("""
from minigrad import course
from minigrad.course import made_from
from minigrad.viz.lessons.memory_maps import memory_map
import minigrad_course

print(course is minigrad_course, made_from is minigrad_course.made_from, memory_map.__module__)
""")
    assert said == "True True minigrad_course.units.u02_arrays.memory_maps\n"
