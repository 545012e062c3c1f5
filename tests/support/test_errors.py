"""Every mistake that a user can make: the class of the error, its message, and the user's line in it.

Each mistake is a function whose last line causes the error.
"""

import ast
import importlib
import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
import minigrad_course
from minigrad.support import errors
from minigrad.support.errors import (
    AxisError,
    CheckError,
    ConversionError,
    DeviceError,
    DtypeError,
    GradError,
    IndexingError,
    MinigradError,
    MutationError,
    NanError,
    ShapeError,
    TraceError,
)
from minigrad.support.source import outside

FAULTS = []
ROOT = Path(mg.__file__).parents[1]


def fault(error, *parts, also=Exception):
    """Declares that the last line of a function raises `error`, and that its message contains all `parts`."""

    def note(function):
        FAULTS.append((function, error, parts, also))
        return function

    return note


def leaf(*values):
    return mg.asarray(list(values), requires_grad=True)


# Shapes ---------------------------------------------------------------------------------------------------------------


@fault(
    ShapeError, "add: shapes (2, 3) and (2, 4) do not broadcast: 3 against 4 in dimension 1", "Hint", also=ValueError
)
def broadcasting():
    mg.ones((2, 3)) + mg.ones((2, 4))


@fault(ShapeError, "(2, 3) and (4, 3)", "2 against 4 in dimension 0")
def broadcasting_in_a_composed_function():
    mg.logical_and(mg.ones((2, 3)), mg.ones((4, 3)))


@fault(ShapeError, "multiply: shapes (2,) and (3,)")
def broadcasting_large_tensors():
    x = mg.ones((2, 50_000))
    mg.tanh(x)[0][:2] * mg.ones(3)


@fault(ShapeError, "broadcast_to: shapes (3,) and (2, 4)", "3 against 4")
def broadcasting_to():
    mg.broadcast_to(mg.ones(3), (2, 4))


@fault(ShapeError, "broadcast_to: shape (2, 3) does not broadcast to (3,)")
def broadcasting_to_less():
    mg.broadcast_to(mg.ones((2, 3)), (3,))


@fault(ShapeError, "matmul", "(2, 3)", "(4, 5)", "3", "4")
def matrix_product():
    mg.ones((2, 3)) @ mg.ones((4, 5))


@fault(ShapeError, "(2, 3)", "(4, 5)")
def matrix_product_in_a_composed_function():
    mg.linear(mg.ones((2, 3)), mg.ones((4, 5)))


@fault(ShapeError, "reshape: 6 elements of shape (2, 3) do not fit into shape (4, 2)", "product is 6")
def reshaping():
    mg.ones((2, 3)).reshape(4, 2)


@fault(ShapeError, "reshape: 6 elements", "(4, -1)")
def reshaping_to_an_unknown_size():
    mg.ones((2, 3)).reshape(4, -1)


@fault(ShapeError, "concat: shapes (2, 3) and (2, 4) differ in more than dimension 0", "mg.stack")
def joining():
    mg.concat([mg.ones((2, 3)), mg.ones((2, 4))])


@fault(ShapeError, "(2,)", "(3,)")
def stacking():
    mg.stack([mg.ones(2), mg.ones(3)])


@fault(ShapeError, "squeeze: dimension 1 of shape (2, 3) has size 3", "size 1")
def squeezing():
    mg.ones((2, 3)).squeeze(1)


@fault(ShapeError, "nested lists of one shape")
def ragged_lists():
    mg.asarray([[1.0, 2.0], [3.0]])


@fault(ShapeError, "negative sizes: (2, -1)")
def negative_size():
    mg.zeros((2, -1))


@fault(ShapeError, "a value of shape (3,) does not fit into a place of shape (2,)")
def assigning_what_does_not_fit():
    x = mg.zeros((2, 2))
    x[0] = mg.ones(3)


@fault(ShapeError, "(3,)", "assignment")
def assigning_what_does_not_fit_with_a_history():
    x = leaf(1.0, 2.0) * 2
    x[:] = mg.ones(3)


@fault(
    ShapeError,
    "in-place add: the result has shape (2, 3), which does not fit into shape (3,)",
    "mg.add(x, y)",
)
def growing_in_place():
    x = mg.ones(3)
    x += mg.ones((2, 3))


# Axes and indices -----------------------------------------------------------------------------------------------------


@fault(AxisError, "sum: axis 2 does not exist in a tensor of 2 dimensions", "from -2 to 1", also=IndexError)
def wrong_axis():
    mg.ones((2, 3)).sum(axis=2)


@fault(AxisError, "axis -3", "2 dimensions")
def wrong_axis_in_a_composed_function():
    mg.std(mg.ones((2, 3)), axis=-3)


@fault(AxisError, "max: axis (0, -2) names a dimension twice")
def axis_named_twice():
    mg.ones((2, 3)).max(axis=(0, -2))


@fault(AxisError, "permute_dims: a tensor of 2 dimensions needs as many axes", "(0,)")
def too_few_axes():
    mg.ones((2, 3)).permute_dims((0,))


@fault(AxisError, ".T is for matrices", "(2,)", "permute_dims")
def transposing_a_vector():
    mg.ones(2).T  # noqa: B018 - a property that raises


@fault(IndexingError, "index 5 is out of range for dimension 0 of size 3", "from -3 to 2", also=IndexError)
def index_out_of_range():
    mg.arange(3)[5]


@fault(IndexingError, "index -4 is out of range for dimension 1 of size 3")
def second_index_out_of_range():
    mg.ones((2, 3))[:, -4]


@fault(IndexingError, "index 7 is out of range for a dimension of size 3", "from -3 to 2")
def array_index_out_of_range():
    mg.arange(3)[mg.asarray([0, 7])]


@fault(IndexingError, "index 9 is out of range for a dimension of size 4")
def array_index_of_a_later_dimension_out_of_range():
    mg.ones((2, 3, 4))[:, :, mg.asarray([0, 9])]


@fault(IndexingError, "index 9 is out of range for a dimension of size 3")
def taking_out_of_range():
    mg.take(mg.ones((3, 2)), mg.asarray([0, 9]), axis=0)


@fault(IndexingError, "index 3 is out of range for dimension 0 of size 3")
def assigning_out_of_range():
    x = mg.zeros(3)
    x[3] = 1.0


@fault(IndexingError, "index 3 is out of range for a dimension of size 3")
def assigning_at_an_array_out_of_range():
    x = mg.zeros(3)
    x[[0, 3]] = 1.0


@fault(IndexingError, "index 3 is out of range for a dimension of size 3")
def assigning_out_of_range_with_a_history():
    x = leaf(1.0, 2.0, 3.0) * 2
    x[[0, 3]] = 1.0


@fault(IndexingError, "3 indices for a tensor of 2 dimensions, shape (2, 3)")
def too_many_indices():
    mg.ones((2, 3))[0, 0, 0]


@fault(IndexingError, "an index is of integers or bools, not float32", "astype")
def float_index():
    mg.ones(3)[mg.asarray([0.0, 1.0])]


@fault(IndexingError, "str cannot index a tensor")
def string_index():
    mg.ones(3)["a"]


@fault(IndexingError, "only one Ellipsis")
def two_ellipses():
    mg.ones((2, 3))[..., mg.asarray([0]), ...]


@fault(IndexingError, "only one Ellipsis")
def two_ellipses_in_a_plain_index():
    mg.ones((2, 3))[..., 0, ...]


@fault(IndexingError, "topk: k is 5", "size 3")
def too_many_of_the_best():
    mg.topk(mg.ones(3), 5)


@fault(IndexingError, "12", "10")
def embedding_of_an_unknown_word():
    mg.embedding(mg.ones((10, 4)), mg.asarray([3, 12]))


@fault(IndexingError, "7", "3")
def cross_entropy_of_an_unknown_class():
    mg.cross_entropy(mg.zeros((2, 3)), mg.asarray([0, 7]))


@fault(MinigradError, "(2, 3)", "(5,)")
def cross_entropy_of_too_many_targets():
    mg.cross_entropy(mg.zeros((2, 3)), mg.asarray([0, 1, 2, 1, 0]))


# Dtypes and devices ---------------------------------------------------------------------------------------------------


@fault(DtypeError, "only floats can require a gradient, and this tensor is int64", "astype", also=TypeError)
def gradient_of_integers():
    mg.asarray([1, 2], requires_grad=True)


@fault(DtypeError, "bitwise_and does not support float32", "x float32, y float32", "bool, integers")
def bits_of_floats():
    mg.ones(2) & mg.ones(2)


@fault(DtypeError, "subtract does not support bool")
def difference_of_bools():
    mg.ones(2, dtype=bool) - mg.ones(2, dtype=bool)


@fault(DtypeError, "pow does not support bool")
def power_of_bools():
    mg.ones(2, dtype=bool) ** mg.ones(2, dtype=bool)


@fault(DtypeError, "mean is for floats, and this tensor is int64", "astype")
def mean_of_integers():
    mg.arange(3).mean()


@fault(DtypeError, "'complex64' is not a dtype that minigrad has", "float32")
def unknown_dtype():
    mg.zeros(2, dtype="complex64")


@fault(DtypeError, "complex128 is not a dtype that minigrad has")
def unknown_dtype_of_numpy():
    mg.asarray(np.ones(2, complex))


@fault(
    DtypeError, "in-place divide: the result is float32, which does not fit into a tensor of int64", "mg.divide(x, y)"
)
def integers_divided_in_place():
    x = mg.arange(3)
    x /= 2


@fault(DtypeError, "in-place add", "float64", "float32")
def widening_in_place():
    x = mg.ones(2)
    x += mg.ones(2, dtype="float64")


@fault(
    DeviceError,
    "add: its inputs are on different devices, cpu and cpu:1",
    'x.to("cpu:1")',
    "x (2,) float32 on cpu",
    also=RuntimeError,
)
def mixed_devices():
    mg.ones(2) + mg.ones(2, device="cpu:1")


@fault(DeviceError, "cpu and cpu:1")
def mixed_devices_in_a_composed_function():
    mg.stack([mg.ones(2), mg.ones(2, device="cpu:1")])


@fault(DeviceError, "cpu and cpu:1")
def mixed_devices_in_place():
    x = mg.ones(2)
    x += mg.ones(2, device="cpu:1")


@fault(DeviceError, "cpu and cpu:1")
def mixed_devices_in_an_assignment():
    x = mg.ones(2)
    x[0] = mg.ones((), device="cpu:1")


@fault(DeviceError, "no device named 'npu'", "'cpu'", "'cuda'")
def unknown_device():
    mg.ones(2, device="npu")


@fault(DeviceError, "no device named 'cpu:x'")
def unknown_device_number():
    mg.ones(2).to("cpu:x")


# Conversions ----------------------------------------------------------------------------------------------------------


@fault(ConversionError, "the truth of a tensor of 2 elements is ambiguous", "x.any() or x.all()", also=ValueError)
def ambiguous_truth():
    bool(mg.ones(2) > 0)


@fault(
    ConversionError,
    "item() needs a tensor of one element, and this one has 2, shape (2,)",
    "x[i].item()",
    also=TypeError,
)
def item_of_many():
    mg.ones(2).item()


@fault(ConversionError, "float() needs a tensor of one element, and this one has 2")
def number_of_many():
    float(mg.ones(2))


@fault(ConversionError, "numpy()", "x.detach().numpy()")
def numpy_of_a_tracked_tensor():
    leaf(1.0).numpy()


@fault(ConversionError, "only an integer tensor without dimensions can be an index, not float32 ()")
def float_as_a_list_index():
    [1, 2, 3][mg.asarray(1.0)]


@fault(ConversionError, "len()", "x.ndim is 0")
def length_without_dimensions():
    len(mg.asarray(1.0))


@fault(ConversionError, "iteration", "x.item()")
def iteration_without_dimensions():
    list(mg.asarray(1.0))


@fault(ConversionError, "max and min of no elements do not exist: shape (0, 3)")
def maximum_of_nothing():
    mg.zeros((0, 3)).max(axis=0)


@fault(ConversionError, "argmax and argmin of no elements do not exist")
def position_in_nothing():
    mg.zeros((0, 3)).argmin()


@fault(ConversionError, "int32", "copy=False")
def cast_without_a_copy():
    mg.asarray(mg.ones(2), dtype="int32", copy=False)


@fault(ConversionError, "str is not a tensor, a number or a NumPy array", "mg.asarray")
def operand_that_is_no_tensor():
    mg.add(mg.ones(2), "two")


# Gradients ------------------------------------------------------------------------------------------------------------


@fault(
    GradError, "backward: only a single number has a gradient, and this output has shape (2,)", ".sum()",
    also=RuntimeError,
)
def backward_of_many():
    (leaf(1.0, 2.0) * 2).backward()


@fault(GradError, "backward: this tensor has no history", "requires_grad=True")
def backward_without_a_history():
    mg.ones(2).sum().backward()


@fault(GradError, "a second time through multiply", "y = (w * w).sum()", "retain_graph=True")
def backward_twice():
    w = leaf(1.0, 2.0)
    y = (w * w).sum()
    y.backward()
    y.backward()


@fault(GradError, "a second time", "y = mg.std(w)")
def backward_twice_through_a_composed_function():
    w = leaf(1.0, 2.0)
    y = mg.std(w)
    y.backward()
    y.backward()


@fault(GradError, "the output does not depend on input 1, of shape (1,)", "allow_unused=True")
def unused_input():
    w, unused = leaf(1.0, 2.0), leaf(1.0)
    mg.gradients((w * w).sum(), [w, unused])


@fault(GradError, "input 0 does not require a gradient", "requires_grad = True")
def gradient_by_a_constant():
    w, constant = leaf(1.0), mg.ones(1)
    mg.gradients((w * constant).sum(), constant)


@fault(GradError, "requires_grad can be switched off for leaves only", "x.detach()")
def switching_gradients_off_on_a_result():
    y = leaf(1.0) * 2
    y.requires_grad = False


@fault(GradError, "(2,)", "(3,)")
def gradient_of_another_shape():
    w = leaf(1.0, 2.0)
    w.grad = mg.ones(3)


# Mutation -------------------------------------------------------------------------------------------------------------


@fault(MutationError, "in-place change of a leaf", "w = mg.asarray(1.0", "mg.no_grad()", also=RuntimeError)
def leaf_changed_in_place():
    w = mg.asarray(1.0, requires_grad=True)
    w += 1


@fault(MutationError, "input x of multiply, a tensor of shape (1,)", "y = w * w", "w += 1", "x.copy()")
def saved_value_changed():
    w = leaf(1.0)
    y = w * w
    with mg.no_grad():
        w += 1
    y.backward()


@fault(MutationError, "of multiply, a tensor of shape (2,)", "y = mg.var(w * c)", "c[0] = 5.0")
def saved_value_changed_through_a_composed_function():
    w, c = leaf(1.0, 2.0), mg.ones(2)
    y = mg.var(w * c)
    c[0] = 5.0
    y.backward()


@fault(MutationError, "the result of exp", "y = w.exp()", "mark_written(y.data)")
def saved_result_changed_behind_the_back():
    w = leaf(1.0)
    y = w.exp()
    y.data[0] = 1.0
    mg.core.clock.mark_written(y.data)
    y.backward()


@fault(MutationError, "has a history, which a write under no_grad would contradict", "y = leaf(1.0) * 2")
def result_changed_under_no_grad():
    y = leaf(1.0) * 2
    with mg.no_grad():
        y[0] = 1.0


@fault(MutationError, "broadcast view", "x.copy()")
def broadcast_view_changed():
    x = mg.broadcast_to(mg.ones(1), (3,))
    x[0] = 2.0


@fault(MutationError, "broadcast view", "x.copy()")
def broadcast_view_with_a_history_changed():
    x = mg.broadcast_to(leaf(1.0) * 2, (3,))
    x += 2.0


@fault(DtypeError, "would lose it in a tensor of int64", "value.detach()")
def integers_given_a_value_with_a_history():
    x = mg.zeros(2, dtype=int)
    x[0] = leaf(1.0)[0]


@fault(DtypeError, "300", "int8")
def value_out_of_range_assigned():
    x = mg.zeros(2, dtype="int8")
    x[0] = 300


# NaN, values that do not exist, wrong gradients -----------------------------------------------------------------------


@fault(NanError, "log made a nan from inputs without one", "from -1 to 2", also=FloatingPointError)
def nan_forward():
    with mg.debug_nans():
        mg.log(mg.asarray([-1.0, 2.0]))


@fault(NanError, "divide made a nan", "in the gradient of sqrt made at", "y = mg.sqrt(w)")
def nan_backward():
    w = leaf(0.0)
    y = mg.sqrt(w) * 0.0
    with mg.debug_nans():
        y.backward()


@fault(TraceError, "float() needs the value of a tensor inside vmap", "2 values, one for each")
def value_inside_vmap():
    mg.vmap(lambda x: float(x.sum()))(mg.ones((2, 3)))


@fault(TraceError, "bool() needs the value of a tensor inside vmap", "mg.where")
def condition_inside_vmap():
    mg.vmap(lambda x: x if x.sum() > 0 else -x)(mg.ones((2, 3)))


@fault(CheckError, "the gradient of input 0 is wrong", also=AssertionError)
def wrong_gradient():
    mg.gradcheck(lambda x: x * x.detach(), [mg.asarray([3.0])])


# The tests ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("provoke", "error", "parts", "also"), FAULTS, ids=[f[0].__name__ for f in FAULTS])
def test_message_says_what_happened_and_where(provoke, error, parts, also):
    with pytest.raises(error) as caught:
        provoke()
    message = str(caught.value)
    assert isinstance(caught.value, also)
    for part in parts:
        assert part in message, message
    lines, first = inspect.getsourcelines(provoke)
    assert message.splitlines()[-1] == f"  Line: {__file__}:{first + len(lines) - 1}  {lines[-1].strip()}", message


@pytest.mark.parametrize(("provoke", "error", "parts", "also"), FAULTS[:1] + FAULTS[-1:])
def test_an_error_survives_pickling(provoke, error, parts, also):
    with pytest.raises(error) as caught:
        provoke()
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is error and str(copy) == str(caught.value)


# Exceptions that users need not catch: minigrad catches them, or they only name the cause of another error.
INTERNAL = {
    "Again", "Incomparable", "ItemFault", "LostPatience", "Misfit", "NoShortForm", "NotOnATape", "Pause",
    "TimeIsUp", "Unreadable", "WorkersTraceback",
}


@pytest.mark.slow
def test_exceptions_of_the_package_are_minigrad_errors_with_an_example():
    packages = [Path(package.__file__).parent for package in (mg, minigrad_course)]
    found = set()
    for path in [path for package in packages for path in package.rglob("*.py")]:
        if path.stem.startswith("test_") or path.stem.endswith("_notebook"):
            continue
        place = next(package.parent for package in packages if package in path.parents)
        name = ".".join(path.relative_to(place).with_suffix("").parts)
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        declared = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
        if declared and not {"units", "authoring"} & {*path.parts} and not path.stem.startswith("__"):
            module = importlib.import_module(name)
            found |= {c for n in declared if isinstance(c := getattr(module, n, None), type)}
    exceptions = {c for c in found if issubclass(c, BaseException) and not issubclass(c, Warning)}
    assert {c.__name__ for c in exceptions if not issubclass(c, MinigradError)} == INTERNAL
    for cls in {c for c in exceptions if issubclass(c, MinigradError)} - {MinigradError}:
        example = ">>> " in cls.__doc__ or cls.__name__ in cls.__base__.__doc__  # or in that of the general class
        assert example, f"{cls.__name__} has no example"


def test_the_classes_of_the_catalogue_are_public_and_kinds_of_pythons_own():
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, MinigradError)]
    for cls in classes:
        assert getattr(mg, cls.__name__) is cls and cls.__name__ in errors.__all__
        builtins = [
            b for b in cls.__mro__ if b.__module__ == "builtins" and issubclass(b, Exception) and b is not Exception
        ]
        assert cls is MinigradError or builtins, f"{cls.__name__} does not derive from a built-in error"


def test_a_failed_operation_changes_nothing():
    w = leaf(1.0, 2.0)
    h = w * 2
    view = h[1:]
    for attempt in (
        lambda: h.__iadd__(mg.ones(3)),
        lambda: h.__setitem__(5, 1.0),
        lambda: h.__setitem__([0, 9], 1.0),
        lambda: h.__setitem__(0, mg.ones(4)),
        lambda: h.__imul__(mg.ones(2, device="cpu:1")),
        lambda: h.__itruediv__(mg.ones(2, dtype="float64")),
    ):
        with pytest.raises(MinigradError):
            attempt()
        assert (h.tolist(), view.tolist()) == ([2, 4], [4])
    (h * h).sum().backward()
    assert w.grad.tolist() == [8, 16]


@pytest.mark.slow
def test_a_traceback_may_be_deeper_than_python_calls():
    def deep(depth):
        return deep(depth - 1) if depth else mg.ones(2) + mg.ones(3)

    before = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(before + 3000)
        with pytest.raises(ShapeError) as raised:
            deep(before + 1500)
    finally:
        sys.setrecursionlimit(before)
    trace, count = outside(raised.value.__traceback__), 0
    while trace is not None:
        trace, count = trace.tb_next, count + 1
    assert count == before + 1502  # this function and `deep`


# in a notebook -------------------------------------------------------------------------------------------------------

NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="nocolor")
for cell in (
    "import minigrad as mg\\nx = mg.ones(2, requires_grad=True)\\ny = (x * x).sum()\\ny.backward()",
    "def again():\\n    y.backward()\\nagain()",
    "mg.linalg.cholesky(-mg.eye(2))",
):
    shell.run_cell(cell, store_history=True)
shell.run_line_magic("xmode", "Verbose")
shell.run_cell("again()", store_history=True)
"""


@pytest.mark.slow
def test_notebook_shows_only_the_users_lines():
    pytest.importorskip("IPython")
    command = [sys.executable, "-c", NOTEBOOK]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    again, factor, everything = re.split("^-{70,}$", shown, flags=re.MULTILINE)[1:]
    assert "Cell In[2], line 3" in again and "Cell In[2], line 2, in again()" in again
    assert "made at Cell In[1]:3  y = (x * x).sum()" in again and "Line: Cell In[2]:2  y.backward()" in again
    assert "is not positive definite" in factor and "LinAlgError" not in factor  # the exception that caused it
    assert "minigrad/" not in again.replace("\\", "/") + factor.replace("\\", "/")
    assert "minigrad/autodiff/" in everything.replace("\\", "/")
