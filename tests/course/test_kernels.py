"""Kernels of one place: what is recorded, counted and run, and the operators that are made of them."""

import numpy as np
import pytest

import minigrad as mg
import minigrad_course as course
from minigrad.core.primitive import P
from minigrad_course import erf, exp, log, sqrt, tanh, where
from minigrad_course.feedback import Misused
from minigrad_course.units.u09_eager_costs.kernels import Program

X = np.array([-2.0, -0.5, 0.5, 3.0], np.float32)


def one(formula):
    """A kernel of one input."""

    def kernel(i, x, out):
        out[i] = formula(x[i])

    return kernel


@pytest.mark.parametrize(
    ("formula", "right"),
    [
        (lambda a: 2 * a + 1 - a / 4, lambda x: 2 * x + 1 - x / 4),
        (lambda a: 1 - a, lambda x: 1 - x),
        (lambda a: 1 / -a, lambda x: 1 / -x),
        (lambda a: a**2 + a**3, lambda x: x**2 + x**3),
        (lambda a: 2**a, lambda x: 2**x),
        (lambda a: np.float64(2) * a, lambda x: 2 * x),
        (lambda a: exp(a) + tanh(a) + sqrt(a * a), lambda x: np.exp(x) + np.tanh(x) + np.abs(x)),
        (lambda a: log(a * a) + erf(0.0) + sqrt(4), lambda x: np.log(x * x) + 2),
        (lambda a: where(a > 0, a, 0.0), lambda x: np.maximum(x, 0)),
        (lambda a: where(a <= -0.5, 1, where(2 >= a, 2, 3)), lambda x: np.where(x <= -0.5, 1, np.where(x <= 2, 2, 3))),
        (lambda a: where(a < 0, -a, a) + where(True, 1, 2), lambda x: np.abs(x) + 1),
        (lambda a: 7, lambda x: np.full_like(x, 7)),
        (lambda a: a * (a > 0) + (a < 1), lambda x: x * (x > 0) + (x < 1)),  # a condition counts as 1 or 0
        (lambda a: a > 0, lambda x: x > 0),
        (lambda a: where(a > 0, a > 1, 5), lambda x: np.where(x > 0, x > 1, 5)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("error:NumPy runs")  # machine code runs it, not NumPy
def test_a_kernel_computes_what_numpy_does(formula, right, dtype):
    found = Program(one(formula))(X.astype(dtype))
    assert found.dtype == dtype and np.allclose(found, right(X.astype(dtype)), rtol=1e-6)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_a_kernel_runs_on_any_shape_and_into_given_memory(backend, monkeypatch):
    monkeypatch.setenv("MINIGRAD_BACKEND", backend)

    def weighted(i, g, x, out):
        out[i] = g[i] * x[i]

    program = Program(weighted)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(program(x.T, x.T), (x * x).T)
    assert np.array_equal(program(np.float32([[2], [3]]), x), [[0, 2, 4], [9, 12, 15]])
    out = np.zeros((2, 3), np.float32)
    assert program(x, x, out=out) is out and np.array_equal(out, x * x)
    turned = np.zeros((3, 2), np.float32).T
    assert program(x, x, out=turned) is turned and np.array_equal(turned, x * x)
    assert program(x[:0], x[:0]).shape == (0, 3)
    assert program(np.arange(3), np.arange(3)).dtype == np.float32


def test_a_place_that_is_read_twice_counts_once():
    def kernel(i, g, x, out):
        out[i] = g[i] * x[i] * x[i] + x[i]

    program = Program(kernel)
    assert program.bytes == 12
    assert str(program.kernel()).count("op='load'") == 2


def test_mistakes_in_kernels_are_explained():
    cases = {
        "x is a whole array": lambda i, x, out: out.__setitem__(i, x * 2),
        "is not the number at the place i": lambda i, x, out: out.__setitem__(0, x[i]),
        "out[i] is read": lambda i, x, out: out.__setitem__(i, out[i]),
        "x[i] is written": lambda i, x, out: x.__setitem__(i, 1),
        "the place i is not a number": lambda i, x, out: x[i - 1],
        "a value in a register is not known": lambda i, x, out: out.__setitem__(i, 1 if x[i] > 0 else 0),
        "not a Python number": lambda i, x, out: float(x[i]),
        "x has no length": lambda i, x, out: len(x),
        "computes with numbers, not with 'two'": lambda i, x, out: out.__setitem__(i, x[i] * "two"),
        "writes nothing": lambda i, x, out: x[i],
    }
    for words, kernel in cases.items():
        with pytest.raises(Misused, match=words.replace("[", r"\[")):
            Program(kernel).recorded()
    with pytest.raises(NotImplementedError):
        Program(lambda i, x, out: None).recorded()
    with pytest.raises(Misused, match="takes 1 arguments"):
        Program(lambda x: x)


def test_languages_shows_the_text_in_four():
    book = course.languages(one(lambda a: a * 2))
    assert repr(book) == "<kernel in Python, C, LLVM and CUDA>"
    names = [page.name for page in book.pages[0]]
    assert names == ["Python", "C", "LLVM", "CUDA"]
    shown = ["".join(page.drawing.pieces) for page in book.pages[0]]
    for text, words in zip(shown, ("formula(x[i])", "for (int64_t i = lo", "fmul float", "blockIdx.x")):
        assert words in text
    assert "more lines" in shown[2] and "more lines" not in shown[1]


def test_languages_of_a_function_without_a_text():
    room = {}
    exec("def f(i, x, out):\n    out[i] = x[i]", room)
    assert "def f(i, x, out): ..." in "".join(course.languages(room["f"]).pages[0][0].drawing.pieces)


# ---- operators -------------------------------------------------------------------------------------------------------


def silu(i, x, out):
    out[i] = x[i] / (1 + exp(-x[i]))


def silu_backward(i, g, x, dx):
    s = 1 / (1 + exp(-x[i]))
    dx[i] = g[i] * (s + x[i] * s * (1 - s))


def test_an_operator_computes_and_differentiates_like_the_composite():
    x = mg.asarray(X, requires_grad=True)
    right = mg.silu(x)
    (gradient,) = mg.grad(lambda x: (mg.silu(x) * mg.silu(x)).sum(), argnums=(0,))(x)
    with course.operator("silu", silu, silu_backward) as mine:
        found = mg.silu(x)
        (found * found).sum().backward()
        assert {"silu", "silu_backward"} <= {op.name for op in P}
        line = mg.viz.bench(mg.silu, x).text().splitlines()[0]
        assert line == "1. silu on cpu runs silu *: (4,) float32 → (4,) float32"
        assert mg.nn.SiLU()(mg.asarray(X.astype("f8"))).dtype == mg.float64
    assert np.allclose(found.tolist(), right.tolist()) and np.allclose(x.grad.tolist(), gradient.tolist())
    assert mine.calls >= 3 and not {"silu", "silu_backward"} & {op.name for op in P}
    assert not hasattr(P, "silu") and mg.silu(x).tolist() == right.tolist()


def test_an_operator_runs_on_large_arrays_in_blocks_and_in_jitted_functions():
    x = mg.asarray(np.linspace(-3, 3, 400_000, dtype=np.float32))
    right = mg.silu(x).numpy()
    with course.operator("silu", silu, silu_backward) as mine:
        assert np.allclose(mg.silu(x).numpy(), right, atol=1e-6) and mine.calls > 1
        assert np.allclose(mg.jit(lambda x: mg.silu(x) * 1)(x).numpy(), right, atol=1e-6)


def test_an_operator_is_composed_again_inside_of_a_block():
    from minigrad_course.units.u09_eager_costs.operators import composed_again

    with course.operator("silu", silu, silu_backward) as mine:
        with composed_again("silu"):
            mg.silu(mg.ones(2))
        assert mine.calls == 0
        mg.silu(mg.ones(2))
    assert mine.calls == 1


def test_an_operator_that_cannot_be_is_refused_and_nothing_remains():
    with pytest.raises(Misused, match="no composed function called tanh"), course.operator("tanh", silu, silu_backward):
        pass
    with pytest.raises(Misused, match=r"its arguments are \(i, x, out\)"), course.operator("silu", silu, silu):
        pass
    with pytest.raises(Misused, match="writes nothing"), course.operator("silu", lambda i, x, out: x[i], silu_backward):
        pass
    with pytest.raises(ZeroDivisionError), course.operator("silu", silu, silu_backward):
        raise ZeroDivisionError
    assert not hasattr(P, "silu")
