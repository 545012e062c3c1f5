"""Every primitive, by its samples: values, shapes, dtypes, gradients, saved values, memory, devices, declarations.

A new primitive is tested by adding its samples to `samples.py` and its NumPy equivalent to `references.py`.
"""

import inspect
import itertools
import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.loops.operations import OPERATIONS, Done, Given, steps_of
from minigrad.core import emit as emitting
from minigrad.core.emit import emit
from minigrad.core.primitive import P
from minigrad.devices import registry
from minigrad.support.errors import DtypeError, MutationError
from tests.numerical import check_gradients
from tests.references import REFERENCES, VIEWS
from tests.samples import ELSEWHERE, SAMPLES

RTOL = {"float16": 4e-3, "float32": 3e-6, "float64": 1e-12}
LAYOUTS = ("plain", "reversed", "transposed")
NAMES = sorted(op.name for op in P if op.name in SAMPLES)
KINDS = {"elementwise", "reduce", "view", "index", "contract", "random", "creation", "structural"}

every_primitive = pytest.mark.parametrize("name", NAMES)


def laid_out(value, layout, device="cpu", requires_grad=False):
    """A tensor (a number stays one) whose memory is in order, backwards in every dimension, or transposed."""
    if not isinstance(value, np.ndarray):
        return value
    if layout == "reversed":
        backwards = (slice(None, None, -1),) * value.ndim
        return mg.asarray(value[backwards], device=device)[backwards or ...]
    if layout == "transposed":
        return mg.permute_dims(mg.asarray(value.T, device=device))
    return mg.asarray(value, device=device, requires_grad=requires_grad and value.dtype.kind == "f")


def applied(sample, layout="plain", device="cpu"):
    """The inputs and the results of a sample call."""
    inputs = [laid_out(x, layout, device) for x in sample.inputs]
    attrs = sample.attrs | ({"device": mg.as_device(device)} if "device" in sample.attrs else {})
    result = emit(P[sample.op], *inputs, **attrs)
    return inputs, list(result) if isinstance(result, tuple) else [result]


def wide(x):
    return x.astype(np.float64) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x


def common(sample):
    """The inputs for the NumPy reference: floats in float64, and bools if all inputs are bools."""
    if sample.op == "bitcast":
        return sample.inputs
    inputs = [wide(x) for x in sample.inputs]
    if P[sample.op].domain == "float":
        return [x.astype(np.float64) if isinstance(x, np.ndarray) else float(x) for x in inputs]
    return inputs


def assert_same_values(result, expected, what):
    """Check that floats are equal up to their precision and other values exactly."""
    array = result.numpy_copy()
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            expected = np.asarray(expected).astype(array.dtype).astype(np.float64)
        rtol = RTOL[array.dtype.name]
        np.testing.assert_allclose(array.astype(np.float64), expected, rtol=rtol, atol=rtol, err_msg=what)
    else:
        np.testing.assert_array_equal(array, np.asarray(expected).astype(array.dtype), err_msg=what)


def test_primitives_have_samples_and_a_reference():
    missing = {op.name for op in P} - SAMPLES.keys() - ELSEWHERE.keys()
    assert not missing, f"declare samples for {', '.join(missing)} in tests/samples.py"
    assert SAMPLES.keys() | ELSEWHERE.keys() <= {op.name for op in P}
    assert SAMPLES.keys() <= REFERENCES.keys()


# Values ---------------------------------------------------------------------------------------------------------------


@every_primitive
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_are_those_of_numpy(name, layout):
    for sample in SAMPLES[name]:
        _, results = applied(sample, layout)
        with np.errstate(all="ignore"):
            expected = REFERENCES[name](*common(sample), **sample.attrs)
        for result, wanted in zip(results, expected if isinstance(expected, tuple) else [expected]):
            assert_same_values(result, wanted, str(sample))


@every_primitive
def test_results_are_arrays_and_infer_predicts_shape_and_dtype(name):
    op = P[name]
    for sample in SAMPLES[name]:
        inputs, results = applied(sample)
        foretold = op.infer(*inputs, **sample.attrs)
        for result, (shape, dtype) in zip(results, foretold if len(results) > 1 else [foretold]):
            assert type(result.data) is np.ndarray, sample
            assert (result.shape, result.dtype) == (shape, dtype), sample
            assert type(shape) is tuple and all(type(s) is int for s in shape), sample


@every_primitive
def test_a_second_cpu_device_gives_the_same(name):
    for sample in SAMPLES[name]:
        here, there = applied(sample)[1], applied(sample, device="cpu:1")[1]
        for a, b in zip(here, there):
            assert str(b.device) == "cpu:1", sample
            np.testing.assert_array_equal(a.numpy_copy(), b.numpy_copy(), err_msg=str(sample))


@pytest.mark.parametrize("name", [n for n in NAMES if P[n].kind == "elementwise" and len(P[n].inputs) < 3])
def test_public_functions_and_quick_forms_equal_emit(name):
    if any(sample.attrs for sample in SAMPLES[name]):
        return
    for sample in SAMPLES[name]:
        inputs, [result] = applied(sample)
        quick = getattr(mg, name)(*inputs)
        assert quick.dtype == result.dtype
        np.testing.assert_array_equal(quick.numpy_copy(), result.numpy_copy(), err_msg=str(sample))


@pytest.mark.parametrize("name", [n for n in NAMES if P[n].kind == "elementwise"])
def test_results_of_large_inputs_equal_those_of_small_ones(name, monkeypatch):
    """Above some size, a device takes the memory of a result from its pool; tests/devices covers blocks and threads."""
    monkeypatch.setattr(emitting, "LARGE", 1 << 15)
    monkeypatch.setattr(registry, "WORTH_KEEPING", 1 << 15)
    for sample in SAMPLES[name]:
        if not sample.inputs or not isinstance(sample.inputs[0], np.ndarray) or not sample.inputs[0].size:
            continue
        inputs, [small] = applied(sample)
        shape = (40_000 // small.size + 1, *small.shape)
        many = [mg.broadcast_to(x, shape) if isinstance(x, mg.Tensor) else x for x in inputs]
        large = emit(P[name], *many, **sample.attrs)
        for row in (large[0], large[-1]):
            assert_same_values(row, small.numpy_copy(), str(sample))
        assert large.dtype == small.dtype


# Gradients ------------------------------------------------------------------------------------------------------------


def test_rules_of_primitives_have_a_smooth_sample():
    missing = []
    for op in P:
        for number, name in enumerate(op.inputs):
            if name.lstrip("*") in op.rules and op.name in SAMPLES:
                smooth = [s for s in SAMPLES[op.name] if s.smooth and len(s.inputs) > number]
                if not any(getattr(s.inputs[number], "dtype", None) == np.float64 for s in smooth):
                    missing.append(f"{op.name}: {name}")
    assert missing == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in NAMES if P[n].rules])
def test_gradients_are_central_differences_to_second_order(name):
    for sample in SAMPLES[name]:
        if sample.smooth:
            check_sample(sample)


def check_sample(sample):
    arrays = [x for x in sample.inputs if isinstance(x, np.ndarray)]

    def function(*tensors):
        rest = iter(tensors)
        given = [next(rest) if isinstance(x, np.ndarray) else x for x in sample.inputs]
        return emit(P[sample.op], *given, **sample.attrs)

    try:
        check_gradients(function, *arrays)
    except AssertionError as error:
        raise AssertionError(f"{sample}\n{error}") from None


@pytest.mark.parametrize("name", [n for n in NAMES if P[n].rules])
def test_gradients_have_the_dtype_and_shape_of_their_inputs(name):
    for sample in SAMPLES[name]:
        inputs = [laid_out(x, "plain", requires_grad=True) for x in sample.inputs]
        out = emit(P[name], *inputs, **sample.attrs)
        if not getattr(out, "requires_grad", False):
            continue
        tracked = [x for x in inputs if isinstance(x, mg.Tensor) and x.requires_grad]
        for x, g in zip(tracked, mg.gradients(out, tracked, mg.ones_like(out), allow_unused=True)):
            assert g is None or (g.shape, g.dtype, g.device) == (x.shape, x.dtype, x.device), sample
            assert g is None or not g.requires_grad


# Saved values ---------------------------------------------------------------------------------------------------------


def tracked_choices(sample):
    """Every non-empty choice of float inputs that require a gradient."""
    places = [i for i, x in enumerate(sample.inputs) if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
    for count in range(1, len(places) + 1):
        yield from itertools.combinations(places, count)


def declared(op, count, tracked):
    """The parameters of the rules: indices of inputs, and "out"."""
    names = [op.name_of(i).split("[")[0] for i in range(count)]
    kept = set()
    for number in tracked:
        rule = op.rules.get(names[number])
        asked = list(inspect.signature(rule).parameters)[1:] if rule else []
        kept |= {i for i, n in enumerate(names) if n in asked}
        kept |= {"out"} & set(asked)
    return kept


def one_dtype(sample):
    return len({x.dtype for x in sample.inputs if isinstance(x, np.ndarray) and x.dtype.kind == "f"}) == 1


def keeping_cases():
    for name in NAMES:
        if P[name].rules:
            for sample in SAMPLES[name]:
                if sample.smooth and one_dtype(sample):
                    for tracked in tracked_choices(sample):
                        yield sample, tracked


def called(sample, tracked):
    inputs = [mg.asarray(x) if isinstance(x, np.ndarray) else x for x in sample.inputs]
    for number in tracked:
        inputs[number].requires_grad = True
    return inputs, emit(P[sample.op], *inputs, **sample.attrs)


def gradients_of(inputs, out, tracked):
    weights = mg.asarray(np.cos(np.arange(out.size)).reshape(out.shape), dtype=out.dtype)
    found = mg.gradients(out, [inputs[i] for i in tracked], weights, allow_unused=True)
    return [None if g is None else g.numpy_copy() for g in found]


def test_a_node_keeps_exactly_what_the_rules_of_its_tracked_inputs_name():
    for sample, tracked in keeping_cases():
        inputs, out = called(sample, tracked)
        if not out.requires_grad:
            continue
        saved = out.node.saved or [None] * (len(inputs) + 1)
        kept = {i for i, value in enumerate(saved[:-1]) if value is not None}
        kept |= {"out"} if saved[-1] is not None else set()
        assert kept == declared(P[sample.op], len(inputs), tracked), (str(sample), tracked)


@pytest.mark.slow
def test_overwriting_an_input_is_an_error_if_it_was_kept_and_harmless_if_not():
    for sample, tracked in keeping_cases():
        inputs, out = called(sample, tracked)
        if not out.requires_grad:
            continue
        expected = gradients_of(inputs, out, tracked)
        kept = declared(P[sample.op], len(inputs), tracked)
        for number, x in enumerate(sample.inputs):
            if not isinstance(x, np.ndarray):
                continue
            inputs, out = called(sample, tracked)
            with mg.no_grad():
                inputs[number][...] = 0 if x.dtype.kind in "iu" else 1.5
            if number in kept:
                with pytest.raises(MutationError):
                    gradients_of(inputs, out, tracked)
            else:
                for ours, theirs in zip(gradients_of(inputs, out, tracked), expected):
                    np.testing.assert_array_equal(ours, theirs, err_msg=f"{sample}, tracked {tracked}")


def test_integers_carry_no_gradient():
    x = mg.asarray([1.5, 2.5], dtype="float64", requires_grad=True)
    whole = x.astype("int32")
    assert not whole.requires_grad
    y = x * whole.astype("float64")
    [g] = mg.gradients(y.sum(), [x], create_graph=True)
    assert g.tolist() == [1.0, 2.0]
    assert not g.requires_grad, "x occurs in its own gradient only through integers"


@pytest.mark.slow
def test_the_result_may_be_lost_where_no_rule_names_it():
    for sample, tracked in keeping_cases():
        inputs, out = called(sample, tracked)
        op = P[sample.op]
        if not out.requires_grad or op.kind == "view" or "out" in declared(op, len(inputs), tracked):
            continue
        expected = gradients_of(inputs, out, tracked)
        inputs, out = called(sample, tracked)
        out.data[...] = np.nan
        for ours, theirs in zip(gradients_of(inputs, out, tracked), expected):
            np.testing.assert_array_equal(ours, theirs, err_msg=f"{sample}, tracked {tracked}")


# Memory and recipes ---------------------------------------------------------------------------------------------------


@every_primitive
def test_memory_is_shared_only_by_views(name):
    for sample in SAMPLES[name]:
        inputs, results = applied(sample)
        for result, x in itertools.product(results, inputs):
            if isinstance(x, mg.Tensor) and x.size and result.size:
                assert np.shares_memory(result.data, x.data) == (P[name].kind == "view"), sample


def test_the_view_primitives_are_these_five():
    assert {op.name for op in P if op.kind == "view"} == set(VIEWS)


@every_primitive
def test_recording_keeps_the_recipe_of_an_untracked_result_and_changes_no_value(name):
    for sample in SAMPLES[name]:
        _, plain = applied(sample)
        with mg.record():
            inputs, recorded = applied(sample)
        for a, b in zip(plain, recorded):
            assert b.node is not None and not b.requires_grad, sample
            assert b.node.shape == b.shape and b.node.dtype == b.dtype
            np.testing.assert_array_equal(a.numpy_copy(), b.numpy_copy())
        node = recorded[0].node
        node = node.inputs[0] if node.op is P.project else node
        assert node.op is P[name] and len(node.inputs) == len(inputs)
        assert node.attrs.keys() == sample.attrs.keys()
    if sample.inputs:
        assert all(t.node is None for t in plain), "an untracked result keeps no recipe unless it is being recorded"


# Declarations ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", list(P), ids=lambda op: op.name)
def test_the_declaration_is_complete(op):
    assert op.name.isidentifier() and op.name == op.name.lower() and P[op.name] is op
    assert op.kind in KINDS
    names = [name.lstrip("*") for name in op.inputs]
    assert len(set(names)) == len(names)
    assert set(op.linear) <= set(names)
    assert set(op.linear) <= set(op.rules), "an input in which it is linear has a gradient"
    for rule in op.rules.values():
        parameters = list(inspect.signature(rule).parameters)
        assert parameters[0] == "g"
        assert set(parameters[1:]) <= {*names, "out", "node", "index"}
    if op.kind == "elementwise":
        assert op.expr, "an elementwise primitive of the package needs an expr: add an operation of loops if none fits"
        assert op.cost > 0
        assert set(op.local) == set(op.rules), "each differentiable input has a local derivative for the stepper"
    if op.kind != "structural":
        assert op.formula
        for device in ("cpu", "cpu:1"):
            assert op.name in mg.as_device(device).kernels


def by_its_expression(op, values, attrs):
    """The value of `expr`, by the NumPy function of each operation of the loop language."""
    conversions = {"cast": lambda x: x.astype(attrs["dtype"]), "bitcast": lambda x: x.view(attrs["dtype"])}
    done = []
    for step in steps_of(op):
        operands = [
            values[o.input] if isinstance(o, Given) else done[o.step] if isinstance(o, Done) else o
            for o in step.operands
        ]
        done.append((conversions.get(step.op) or OPERATIONS[step.op].numpy)(*operands))
    return done[-1]


@pytest.mark.parametrize("name", [name for name in NAMES if P[name].kind == "elementwise"])
def test_the_expression_computes_what_the_kernel_does(name):
    op = P[name]
    for sample in SAMPLES[name]:
        dtype, wrong = op.casts(sample.inputs)
        values = [np.asarray(x).astype(dtype) if i in wrong else x for i, x in enumerate(sample.inputs)]
        with np.errstate(all="ignore"):
            (result,) = applied(sample)[1]
            expected = by_its_expression(op, values, sample.attrs)
        assert_same_values(result, expected, f"expr of {sample}")


def test_an_operation_is_linear_in_its_linear_inputs_taken_together():
    for op in P:
        for sample in SAMPLES.get(op.name, []) if op.linear else []:
            dtypes = {str(x.dtype) for x in sample.inputs if isinstance(x, np.ndarray)}
            if not sample.smooth or not dtypes <= {"float64", "int64", "bool"}:
                continue
            inputs = [mg.asarray(x) if isinstance(x, np.ndarray) else x for x in sample.inputs]
            scaled = [x * 3.0 if op.is_linear(i) else x for i, x in enumerate(inputs)]
            once, thrice = emit(op, *inputs, **sample.attrs), emit(op, *scaled, **sample.attrs)
            if once.dtype.kind == "f":
                np.testing.assert_allclose(thrice.numpy_copy(), once.numpy_copy() * 3, rtol=1e-12, err_msg=str(sample))


# Dtypes ---------------------------------------------------------------------------------------------------------------

# The table of the array API.  Where it is undefined: integer and float give the float's type, bool and any the other.
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64"]
PROMOTION = {
    "bool":    "bool    int8    int16   int32   int64   uint8   float16 float32 float64",
    "int8":    "int8    int8    int16   int32   int64   int16   float16 float32 float64",
    "int16":   "int16   int16   int16   int32   int64   int16   float16 float32 float64",
    "int32":   "int32   int32   int32   int32   int64   int32   float16 float32 float64",
    "int64":   "int64   int64   int64   int64   int64   int64   float16 float32 float64",
    "uint8":   "uint8   int16   int16   int32   int64   uint8   float16 float32 float64",
    "float16": "float16 float16 float16 float16 float16 float16 float16 float32 float64",
    "float32": "float32 float32 float32 float32 float32 float32 float32 float32 float64",
    "float64": "float64 float64 float64 float64 float64 float64 float64 float64 float64",
}
PROMOTION = {(a, b): c for a, row in PROMOTION.items() for b, c in zip(DTYPES, row.split())}
BINARY = [op.name for op in P if op.kind == "elementwise" and len(op.inputs) == 2]
REFUSED = {
    "subtract": "b", "pow": "b", "floor_divide": "b", "remainder": "b",
    "bitwise_and": "f", "bitwise_or": "f", "bitwise_xor": "f", "bitwise_left_shift": "bf", "bitwise_right_shift": "bf",
}


def expected_dtype(name, dtype):
    if name in ("less", "less_equal", "equal"):
        return "bool"
    return "float32" if name in ("divide", "atan2") and np.dtype(dtype).kind != "f" else dtype


def assert_result_dtype(name, x, y, dtype):
    op = P[name]
    if np.dtype(dtype).kind in REFUSED.get(name, ""):
        for attempt in (lambda: emit(op, x, y), lambda: op.infer(x, y)):
            with pytest.raises(DtypeError, match=name):
                attempt()
        return
    wanted = expected_dtype(name, dtype)
    what = f"{name} {getattr(x, 'dtype', x)} {getattr(y, 'dtype', y)}"
    assert emit(op, x, y).dtype == wanted, what
    assert getattr(mg, name)(x, y).dtype == wanted, what
    assert op.infer(x, y)[1] == wanted, what


@pytest.mark.parametrize("name", BINARY)
def test_dtypes_are_promoted_as_in_the_table(name):
    for (a, b), dtype in PROMOTION.items():
        assert_result_dtype(name, mg.ones(2, dtype=a), mg.ones(2, dtype=b), dtype)


@pytest.mark.parametrize("name", BINARY)
def test_a_python_number_is_weak(name):
    for dtype in DTYPES:
        for number in (True, 1, 1.5):
            kind, wanted = np.dtype(dtype).kind, dtype
            if type(number) is float and kind != "f":
                wanted = "float32"
            elif type(number) is int and kind == "b":
                wanted = "int64"
            assert_result_dtype(name, mg.ones(2, dtype=dtype), number, wanted)
            assert_result_dtype(name, number, mg.ones(2, dtype=dtype), wanted)


@pytest.mark.parametrize("name", ["bitwise_invert", "negative", "abs", "floor", "round"])
def test_a_dtype_without_a_meaning_is_refused(name):
    dtypes = ["float16", "float32", "float64"] if name == "bitwise_invert" else ["bool"]
    for dtype in dtypes:
        x = mg.ones(2, dtype=dtype)
        for attempt in (lambda x=x: emit(P[name], x), lambda x=x: getattr(mg, name)(x), lambda x=x: P[name].infer(x)):
            with pytest.raises(DtypeError, match=f"{name} does not support {dtype}"):
                attempt()


def test_python_numbers_make_a_tensor_of_their_default_dtypes():
    assert mg.add(1, 2).dtype == "int64" and mg.add(1, 2.5).dtype == "float32" and mg.add(1, 2).item() == 3


def test_float_functions_of_integers_give_the_default_float():
    for op in P:
        if op.kind == "elementwise" and len(op.inputs) == 1 and op.domain == "float":
            for dtype in DTYPES:
                wanted = dtype if dtype.startswith("float") else "float32"
                assert emit(op, mg.ones(2, dtype=dtype)).dtype == wanted, (op.name, dtype)


def test_a_float_beside_a_large_integer_loses_what_its_precision_takes():
    assert (mg.asarray([2**24 + 1]) + mg.asarray([0.0])).tolist() == [float(2**24)]
    assert math.isinf((mg.asarray([70_000]) + mg.asarray([0.0], dtype="float16")).item())
