"""The matrix products of GPUs, with a stand-in for cuBLAS that reads matrices by columns, from addresses."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigrad.devices import cublas
from minigrad.devices.cublas import ARGUMENTS, PLAIN, Products
from minigrad.support.forking import new_lock

DTYPES = {kind.number: dtype for dtype, kind in cublas.TYPES.items()}


class There(np.ndarray):
    """An array with an address, as CuPy's have it."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.__array_interface__["data"][0])


def there(array):
    return array.view(There)


def matrices(address, kind, leading, apart, count, shape):
    """Matrices that are stored by columns, `leading` elements apart."""
    dtype = DTYPES[kind]
    step = dtype.itemsize
    rows, columns = shape
    assert leading >= max(1, rows), "BLAS refuses such a leading dimension"
    reach = (count - 1) * apart + (columns - 1) * leading + rows
    memory = np.frombuffer((ctypes.c_char * (reach * step)).from_address(address), dtype)
    strides = (apart * step, step, leading * step)
    return np.lib.stride_tricks.as_strided(memory, (count, rows, columns), strides)


def gemm(handle, order_a, order_b, m, n, k, alpha, a, kind_a, lda, next_a, b, kind_b, ldb, next_b, beta,
         c, kind_c, ldc, next_c, count, computing, algorithm):
    x = matrices(a, kind_a, lda, next_a, count, (m, k) if order_a == PLAIN else (k, m))
    y = matrices(b, kind_b, ldb, next_b, count, (k, n) if order_b == PLAIN else (n, k))
    x, y = [each if order == PLAIN else each.swapaxes(1, 2) for each, order in ((x, order_a), (y, order_b))]
    matrices(c, kind_c, ldc, next_c, count, (m, n))[...] = (x.astype(float) @ y.astype(float)) * alpha._obj.value
    return 0


@pytest.fixture(scope="module")
def products():
    made = Products.__new__(Products)
    cuda = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=0))
    made.cupy = SimpleNamespace(
        cuda=cuda,
        empty=lambda shape, dtype: there(np.empty(shape, dtype)),
        broadcast_to=lambda x, shape: np.broadcast_to(x, shape, subok=True),
        ascontiguousarray=lambda x: there(np.ascontiguousarray(x)),
        matmul=lambda x, y, **out: np.matmul(x, y, **out),
    )
    made.workspace, made.call, made.handle, made.lock = None, gemm, 1, new_lock()
    made.set_stream = made.set_workspace = lambda *arguments: 0
    assert len(ARGUMENTS) == gemm.__code__.co_argcount
    return made


LAYOUTS = {
    "plain": lambda x: x,
    "transposed": lambda x: np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2),
    "every other column": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "part of wider rows": lambda x: np.concatenate([x, x], axis=-1)[..., : x.shape[-1]],
    "reversed": lambda x: x[..., ::-1, :].copy()[..., ::-1, :],
    "one row for all": lambda x: np.broadcast_to(x[..., :1, :], x.shape),
    "stack from the end": lambda x: x[::-1].copy()[::-1] if x.ndim > 2 else x,
}
STACKS = [
    ((), ()), ((3,), ()), ((), (3,)), ((3,), (3,)), ((2, 3), (3,)), ((2, 1), (2, 3)), ((2, 3), (2, 3)), ((1, 2), ()),
]
sizes = st.integers(1, 4)


@given(
    rows=sizes, inner=sizes, columns=sizes, stacks=st.sampled_from(STACKS),
    layouts=st.tuples(*[st.sampled_from(sorted(LAYOUTS))] * 2),
    dtype=st.sampled_from(["float16", "float32", "float64", "int32"]), into=st.booleans(),
)
def test_products_are_those_of_numpy(products, rows, inner, columns, stacks, layouts, dtype, into):
    draw = np.random.default_rng(rows + 5 * inner + 25 * columns).integers
    x = there(LAYOUTS[layouts[0]](draw(-3, 4, (*stacks[0], rows, inner)).astype(dtype)))
    y = there(LAYOUTS[layouts[1]](draw(-3, 4, (*stacks[1], inner, columns)).astype(dtype)))
    wanted = np.matmul(x, y)
    out = there(np.full(wanted.shape, 99, dtype)) if into else None
    found = products.product(x, y, out)
    np.testing.assert_array_equal(found if out is None else out, wanted)
    assert found.dtype == dtype and found.shape == wanted.shape


@pytest.mark.parametrize(("x", "y"), [((0, 3), (3, 2)), ((2, 0), (0, 3)), ((0, 2, 3), (3, 4)), ((2, 2, 0), (2, 0, 3))])
def test_empty_products(products, x, y):
    found = products.product(there(np.ones(x, "f")), there(np.ones(y, "f")))
    np.testing.assert_array_equal(found, np.matmul(np.ones(x), np.ones(y)))


def test_a_refused_product_is_an_error(products, monkeypatch):
    monkeypatch.setattr(products, "call", lambda *arguments: 7)
    with pytest.raises(RuntimeError, match=r"cuBLAS reports status 7 for a product of \(2, 3\) and \(3, 4\)"):
        products.product(there(np.ones((2, 3), "f")), there(np.ones((3, 4), "f")))
