"""Public functions with odd arguments: a minigrad error, the result of NumPy, or a result that was reviewed."""

import inspect
import re
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad.arguments import public as arguments
from tests.odd_inputs import ODD

ROOT = Path(__file__).resolve().parents[2]
ANY = ".*"
NUMBERS = r"True|-1|0|2\*\*40|2\*\*70|1\.5|nan|inf|NumPy nan|decimal"
ARRAYS = "integer tensor|64 dimensions|array of bools|empty array|largest uint64|other device"
COLLECTIONS = "no text|bytes|set|generator|integers|empty list|empty tuple|dictionary"

# Functions that NumPy lacks: calls that are accepted although the argument is not of the declared type:
# function, parameter, input, why.  Arguments of the declared type need no line.
REVIEWED = (
    (ANY, "requires_grad|keepdims|copy|stable|training|include_initial|descending|infinities|upper|strict|reverse|mode"
          "|log_target|largest|endpoint|causal|backward|values|quiet|allow_unused|has_aux|enabled|measure"
          "|align_corners", ANY,
     "a flag is Python's truth of the object"),
    ("mg.cosine_similarity|mg.random.permutation", "axis", f"None|{COLLECTIONS}", "as in sum: all axes, or several"),
    ("mg.random.permutation", "axis", ANY, "not read where the first argument is a count"),
    ("mg.nn.init.(calculate_gain|kaiming_.*)|mg.leaky_relu", "a|slope", ANY, "only leaky_relu reads the slope"),
    (ANY, "eps|momentum|label_smoothing|dropout_p|threshold|slope|beta|alpha|delta|correction|scale|gain"
          "|base|p|norm_type|max_norm|clip_value|ord|rtol"
          "|pos_weight|weight|mean|std|low|high|value|fill_value|ignore_index", f"{NUMBERS}|{ARRAYS}",
     "a number of a formula, which is computed with as it is: PyTorch does the same"),
    (ANY, "shape|sections|repetitions|tensors|widths|workers|metadata|parameters|output_names|iterable",
     f"{COLLECTIONS}|ragged list|deep list|cyclic list|array of .*|{ARRAYS}|complex array|text|0|True",
     "anything that can be iterated over, or is empty"),
    ("mg.io.save_checkpoint", "step", NUMBERS, "a step is any integer"),
    (ANY, "create_graph|replacement", ANY, "a flag is Python's truth of the object"),
    (ANY, "bias", NUMBERS, "a large integer beside a float becomes a float"),
    ("mg.print", "message", ANY, "printed as it is"),
    ("mg.while_loop", "max_steps", NUMBERS, "more steps than are ever taken"),
    (ANY, "seed", NUMBERS, "modulo 2**64"),
    (ANY, "inputs|batches|callbacks|watch|indices|input_names|output_names|names|devices", f"None|{COLLECTIONS}",
     "anything that can be iterated over, or is empty"),
    ("mg.train.History", "iterable", ANY, "a list"),
)
# Accepted calls for which NumPy raises an error or has another result: function, parameter, input, why.
UNLIKE_NUMPY = (
    (ANY, "keepdims|descending|stable|include_initial|upper|equal_nan|full_matrices", "deep list|cyclic list",
     "a flag is Python's truth"),
    ("mg.linalg.pinv", "rtol", ARRAYS, "a tolerance for each matrix of the result"),
    (ANY, "dtype|to|a|b", "other device|integer tensor|empty array|64 dimensions", "what has a dtype, as finfo"),
    (ANY, "axis", "empty list", "a list of axes is as good as a tuple"),
    ("mg.(max|sum|squeeze)", "axis", "True", "True is the integer 1, as in NumPy's argmax"),
    ("mg.(full|ones|zeros|eye|pad)", "shape|columns|widths", "True|array of bools", "True is the integer 1"),
    (ANY, "shape|sections|tensors", "generator|set", "anything that can be iterated over"),
    ("mg.(promote_types|result_type|nextafter)", ANY, "class|NumPy nan|1.5|nan|inf|empty array|other device"
     "|64 dimensions", "floats are float32 unless something else is said"),
    ("mg.(conj|real|imag|square|positive|round)", "x", "True|array of bools", "bools stay bools"),
    ("mg.reciprocal", "x", f"{NUMBERS}|{ARRAYS}", "1 / x, which is a float; NumPy's is 0 for most integers"),
    ("mg.(isclose|allclose)", "rtol|atol", r"2\*\*70", "a number of a formula"),
    ("mg.round", "decimals", "64 dimensions", "one integer, of any number of dimensions"),
    ("mg.quantile", "x", "True|array of bools|inf", "bools are 0 and 1; between equal elements nothing is subtracted"),
    ("mg.quantile", "q", "64 dimensions|empty array", "shares of any shape"),
    ("mg.astype", "x", "nan|inf|NumPy nan", "casts saturate; NumPy leaves open what comes of such floats"),
    ("mg.(broadcast_arrays|roll|pad)", "tensors|shift|value", "64 dimensions", "NumPy has fewer dimensions there"),
    ("mg.flatten", "x", NUMBERS, "a number has no dimensions, of which all are flattened"),
    ("mg.arange", "start", r"2\*\*70", "a range that ends before it starts is empty"),
    ("mg.diagonal", "offset", r"2\*\*40", "an empty diagonal; NumPy's offset has 32 bits"),
    ("mg.diff", "n", r"2\*\*40", "nothing is left; NumPy subtracts from nothing for ever"),
    ("mg.(std|var)|mg.linalg.vector_norm", "correction|ord", r"2\*\*70", "a number of a formula"),
    ("Tensor.__eq__", "other", "None|text|no text", "Python's own answer: only numbers are equal to tensors"),
    ("Tensor.__setitem__", "value", "64 dimensions", "dimensions of size 1 in front do not count"),
)
# Valid calls that never end.
ENDLESS = (
    ("mg.while_loop", "init|body_fun", "the user's condition stays true"),
    ("mg.fori_loop", "lower|upper", "so many rounds are run"),
    ("mg.train.fit", "epochs", "so many epochs are run"),
    ("mg.viz.(compare|profile|roofline|timeline)", "runs", "so many runs are measured"),
)


def outcomes(part, parts):
    """The outcomes of a sample of the calls: name, parameter, input, end, details, and how NumPy differs."""
    command = [sys.executable, "-m", "tests.odd_inputs", "", "-", str(part), str(parts)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return [line.split("\t") for line in done.stdout.splitlines()]


def listed(calls, *call):
    """Whether a call is on a list.  The last column of the list says why."""
    return any(all(map(re.fullmatch, patterns, call)) for *patterns, _ in calls)


def wrong(found):
    """The calls whose outcome is not allowed."""
    for name, parameter, odd, end, details, unlike in found:
        call, reviewed = f"{name}({parameter}={odd})", (name, parameter, odd)
        if end == "internal" or (end == "hangs" and not listed(ENDLESS, name, parameter)):
            yield f"{call} {end}: {details}"
        elif end == "accepted" and unlike == "no counterpart":
            if details != "declared" and not listed(REVIEWED, *reviewed):
                yield f"{call} is accepted"
        elif end == "accepted" and unlike != "same" and not listed(UNLIKE_NUMPY, *reviewed):
            yield f"{call} is accepted, and {unlike}"


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, pytest.param(None, marks=pytest.mark.slow)])
def test_public_functions_check_their_arguments(part):
    found = outcomes(*((0, 7) if part == 0 else (0, 1)))
    assert len(ODD) == 41 and len(found) > 5000
    assert len({name for name, *_ in found}) > 350
    assert sum(end == "accepted" and unlike == "same" for *_, end, _, unlike in found) > 300
    assert list(wrong(found)) == []


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: mg.eye(-1), mg.ConversionError, "eye: rows is an integer, 0 or more, not -1"),
        (lambda: mg.linalg.trace(mg.ones((2, 2)), 99), mg.ConversionError, "no diagonal at offset 99 in a matrix of"),
        (lambda: mg.grad(None), mg.ConversionError, "grad: function is not a function"),
        (lambda: mg.nn.MaxPool1d(None), mg.ConversionError, "MaxPool1d: size is None"),
        (lambda: mg.nn.MaxPool1d(0), mg.ConversionError, "MaxPool1d: size is 0"),
        (lambda: mg.train.EarlyStopping("abc"), mg.ConversionError, "EarlyStopping: patience is not an integer"),
        (lambda: mg.train.EarlyStopping(-1), mg.ConversionError, "patience is not an integer, 0 or more"),
        (lambda: mg.empty(b"ab"), mg.ShapeError, "a shape is an integer or a sequence of integers, not b'ab'"),
        (lambda: mg.arange(float("nan")), mg.ConversionError, "arange: start, stop and step are finite numbers"),
        (lambda: mg.flip([1, 2]), mg.ConversionError, "flip: x is not a tensor, a number or a NumPy array"),
        (lambda: mg.sort("abc"), mg.ConversionError, "sort: x is not a tensor"),
        (lambda: mg.diagonal([[1]]), mg.ConversionError, r"mg.asarray\(...\) makes a tensor"),
        (lambda: mg.asarray(ODD["deep list"]()), mg.ConversionError, "asarray: data is nested too deeply"),
        (lambda: mg.vjp(mg.exp, ODD["cyclic list"]()), mg.ConversionError, "nested too deeply, or contains itself"),
        (lambda: mg.nn.GELU("abc"), mg.ConversionError, "approximate is 'none' or 'tanh', not 'abc'"),
        (lambda: mg.nn.MSELoss("abc"), mg.ConversionError, "reduction is 'mean', 'sum' or 'none', not 'abc'"),
        (lambda: mg.ones(4).reshape((2, -1), 7), mg.ShapeError, "reshape"),
        (lambda: mg.pad(mg.ones(2), 1.5), mg.ConversionError, "pad: widths"),
        (lambda: mg.load_program("nowhere"), mg.MissingFileError, "load_program: No such file or directory: nowhere"),
        (lambda: mg.nn.Linear(2, 2)([1, 2]), mg.ConversionError, "forward: x is not a tensor"),
    ],
)
def test_odd_arguments_are_refused_with_a_clear_message(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: mg.zeros((2**40, 2**40)),
        lambda: mg.arange(2**60),
        lambda: mg.eye(2**40),
        lambda: mg.linspace(0.0, 1.0, 2**50),
        lambda: mg.random.normal(2**50),
        lambda: mg.adaptive_avg_pool1d(mg.ones((1, 1, 3)), 2**45),
        lambda: mg.pad(mg.ones(2), 2**50),
        lambda: mg.one_hot(mg.asarray([1]), 2**50),
        lambda: mg.nn.Linear(2**40, 2**20),
        lambda: mg.nn.LSTM(2, 2, num_layers=2**50),
        lambda: mg.nn.TransformerEncoder(mg.nn.TransformerEncoderLayer(2, 1, 2), 2**50),
        lambda: mg.jit(lambda: mg.zeros(2**50))(),
        lambda: mg.vmap(lambda x: x + mg.ones(2**50))(mg.ones(2)),
    ],
)
def test_sizes_beyond_memory_are_refused_at_once(call):
    with pytest.raises(mg.ShapeError, match=r"elements, and this machine has .* GB of memory"):
        call()


def test_errors_of_the_users_code_are_not_changed():
    def broken(x):
        return x.no_such_thing

    with pytest.raises(AttributeError, match="no_such_thing") as caught:
        mg.grad(broken)(mg.ones(()))
    assert not isinstance(caught.value, mg.MinigradError)
    with pytest.raises(ZeroDivisionError):
        mg.data.TensorDataset(mg.ones(2)).map(lambda row: 1 / 0)[0]


def test_wrong_calls_raise_pythons_own_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'"):
        mg.flip(mg.ones(2), axes=0)


def test_numbers_and_arrays_are_accepted_as_tensors():
    assert mg.flip(np.array([1, 2])).tolist() == [2, 1]
    assert mg.tril(np.ones((2, 2), "float32")).tolist() == [[1, 0], [1, 1]]
    assert mg.reshape(3.0, (1, 1)).shape == (1, 1) and mg.squeeze(np.ones((1, 2))).shape == (2,)


def no_parameters():
    return ()


def positional_only(x, /, y=2):
    return x, y


def keywords_only(x, *, descending=False, **rest):
    return x, descending, rest


def any_number(*tensors, axis=0):
    return tensors, axis


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (no_parameters, (), {}),
        (positional_only, (1,), {"y": 3}),
        (keywords_only, (1,), {}),
        (keywords_only, (), {"x": 1, "descending": True, "more": 4}),
        (any_number, (1, 2), {}),
        (any_number, (), {"axis": 1}),
    ],
)
def test_checked_functions_keep_their_signature(function, args, kwargs):
    made = arguments.explained(function)
    assert made(*args, **kwargs) == function(*args, **kwargs)
    assert inspect.signature(made) == inspect.signature(function)
    taken = inspect.signature(made, follow_wrapped=False)
    refused = [each for each in taken.parameters.values() if each.name == "_unknown"]
    assert taken.replace(parameters=[each for each in taken.parameters.values() if each not in refused]) == (
        inspect.signature(function))
    assert bool(refused) == (function is not keywords_only)  # which takes any keyword
    for wrong in ({"unheard_of": 1}, {"tensors": 1}):
        if function is not keywords_only:
            # If an argument is missing too, Python names that one first.
            fault = "missing" if function is positional_only else "got an unexpected keyword argument"
            with pytest.raises(TypeError, match=rf"{function.__name__}\(\) {fault}"):
                made(**wrong)


def test_a_traceback_shows_where_a_public_function_is_called():
    with pytest.raises(mg.AxisError) as caught:
        mg.sort(mg.ones(2), axis=5)
    frames = [f for f in traceback.extract_tb(caught.value.__traceback__) if f.filename == arguments.__file__]
    assert frames[0].name == "sort" and {f.line for f in frames} == {"return {marked}_function({given}{named})"}
