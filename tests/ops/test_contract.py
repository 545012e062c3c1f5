"""The matrix product and functions composed from it: values against NumPy in float64, gradients, random einsums."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad.core.primitive import P
from minigrad.support.errors import AxisError, ConversionError, DeviceError, DtypeError, MutationError, ShapeError
from tests.numerical import check_gradients

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.standard_normal(shape)


def assert_same(ours, theirs):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours.numpy_copy(), theirs, rtol=1e-12, atol=1e-12)


# matmul ---------------------------------------------------------------------------------------------------------------

SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((3,), (5, 3, 2)),
    ((5, 2, 3), (3,)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (4, 3, 1)),
    ((0,), (0,)),
    ((0, 3), (3, 0)),
    ((2, 0), (0, 3)),
    ((0, 2, 3), (3, 4)),
    ((2, 0, 3), (3, 4)),
    ((1, 1), (1, 1)),
]


@pytest.mark.parametrize("left, right", SHAPES)
def test_matmul_of_vectors_matrices_and_stacks(left, right):
    a, b = normal(*left), normal(*right)
    assert_same(mg.matmul(mg.asarray(a), mg.asarray(b)), a @ b)
    assert_same(mg.asarray(a) @ mg.asarray(b), a @ b)
    check_gradients(mg.matmul, a, b)


def test_matmul_of_float32_by_the_quick_form_and_of_large_matrices():
    for n in (3, 200):
        a, b = normal(n, n).astype(np.float32), normal(n, n).astype(np.float32)
        out = mg.asarray(a) @ mg.asarray(b)
        assert out.dtype == mg.float32
        np.testing.assert_allclose(out.numpy(), a.astype(float) @ b.astype(float), rtol=1e-3, atol=1e-4)


def test_matmul_of_memory_in_any_order():
    a, b = normal(6, 8), normal(8, 6)
    x, y = mg.asarray(a), mg.asarray(b)
    assert_same(x.T @ y.T, a.T @ b.T)
    assert_same(x[::2, ::-2] @ y[1::2], a[::2, ::-2] @ b[1::2])
    c = normal(4, 3, 5, 2)
    moved = (3, 0, 1, 2)
    assert_same(mg.permute_dims(mg.asarray(c), moved) @ mg.asarray(normal(5, 1)) * 0, np.zeros((2, 4, 3, 1)))
    assert_same(mg.permute_dims(mg.asarray(c), moved) @ x[:5, :3], c.transpose(moved) @ a[:5, :3])


def test_matmul_with_arrays():
    a, b = normal(2, 3), normal(3, 2)
    assert_same(a @ mg.asarray(b), a @ b)
    assert_same(mg.asarray(a) @ b, a @ b)
    assert isinstance(a @ mg.asarray(b), mg.Tensor)


def test_matmul_in_place():
    a, b = normal(2, 3), normal(3, 3)
    x = mg.asarray(a)
    view = x[0]
    x @= mg.asarray(b)
    assert_same(x, a @ b)
    assert_same(view, (a @ b)[0])
    w = mg.asarray(b)
    w @= w
    assert_same(w, b @ b)
    with pytest.raises(ShapeError, match=r"in-place matmul: the result has shape \(2, 2\)"):
        x @= mg.asarray(normal(3, 2))
    leaf = mg.asarray(b, requires_grad=True)
    with pytest.raises(MutationError):
        leaf @= mg.asarray(b)


def test_matmul_in_place_with_a_history():
    def squared(x, y):
        h = x * 1.0
        h @= y
        h @= h
        return h

    check_gradients(squared, normal(3, 3), normal(3, 3))


def test_matmul_keeps_only_the_inputs_that_a_gradient_needs():
    x, y = mg.asarray(normal(2, 3), requires_grad=True), mg.asarray(normal(3, 2))
    saved = (x @ y).node.saved
    assert saved[0] is None and saved[1] is not None and saved[2] is None


def test_the_gradient_of_a_shared_matrix_is_one_product():
    """For a stack of matrices times one matrix, the gradient is one product and not a sum of a stack of gradients."""
    x, w = mg.asarray(normal(50, 4, 3)), mg.asarray(normal(3, 2), requires_grad=True)
    [g] = [step.value for step in mg.autodiff.walk([(x @ w).node], [mg.ones((50, 4, 2), dtype=mg.float64)])]
    assert g.shape == (3, 2)


def test_half_precision_is_summed_in_single():
    a = np.full((1, 4096), 0.1, np.float16)
    out = mg.asarray(a) @ mg.asarray(np.ones((4096, 1), np.float16))
    assert out.dtype == mg.float16
    assert abs(out.item() - 4096 * float(a[0, 0])) < 0.3


@pytest.mark.parametrize(
    "left, right, message",
    [
        ((2, 3), (4, 2), r"matmul: shapes \(2, 3\) and \(4, 2\) do not go together: 3 columns against 4 rows"),
        ((3,), (4,), r"matmul: shapes \(3,\) and \(4,\) do not go together: 3 elements against 4 elements"),
        ((2, 3), (4,), r"matmul: shapes \(2, 3\) and \(4,\) do not go together: 3 columns against 4 elements"),
        ((3,), (4, 2), r"matmul: shapes \(3,\) and \(4, 2\) do not go together: 3 elements against 4 rows"),
        ((2, 2, 3), (4, 2), "3 columns against 4 rows"),
        ((2, 2, 3), (3, 3, 2), r"matmul: shapes \(2,\) and \(3,\) do not broadcast: 2 against 3"),
        ((), (2, 2), "matmul: a matrix has two dimensions"),
        ((2, 2), (), "x . y multiplies by a number"),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_matmul_refuses_shapes_that_do_not_fit(left, right, message, dtype):
    with pytest.raises(ShapeError, match=message):
        mg.ones(left, dtype=dtype) @ mg.ones(right, dtype=dtype)


def test_contractions_refuse_operands_that_do_not_fit():
    with pytest.raises(ShapeError, match="a matrix has two dimensions"):
        mg.ones((2, 2)) @ 2
    with pytest.raises(ConversionError):
        mg.ones((2, 2)) @ "matrix"
    with pytest.raises(DeviceError, match="matmul"):
        mg.ones((2, 2)) @ mg.ones((2, 2), device="cpu:1")


def test_matmul_on_another_device():
    out = mg.ones((2, 2), device="cpu:1") @ mg.ones((2, 2), device="cpu:1")
    assert str(out.device) == "cpu:1" and out.tolist() == [[2.0, 2.0], [2.0, 2.0]]


# tensordot, vecdot, outer, diagonal, trace ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "left, right, axes",
    [
        ((2, 3), (3, 4), 1),
        ((2, 3), (2, 3), 2),
        ((2, 3), (4,), 0),
        ((2, 3, 4), (4, 3, 5), ((1, 2), (1, 0))),
        ((2, 3, 4), (5, 3), ((1,), (-1,))),
        ((2, 3), (3, 2), (1, 0)),
        ((2, 0), (0, 3), 1),
        ((), (), 0),
    ],
)
def test_tensordot(left, right, axes):
    a, b = normal(*left), normal(*right)
    assert_same(mg.tensordot(mg.asarray(a), mg.asarray(b), axes), np.tensordot(a, b, axes))
    check_gradients(lambda x, y: mg.tensordot(x, y, axes), a, b)


def test_vecdot():
    a, b = normal(4, 1, 3), normal(2, 3)
    assert_same(mg.vecdot(mg.asarray(a), mg.asarray(b)), (a * b).sum(-1))
    c = normal(4, 2)
    assert_same(mg.vecdot(mg.asarray(c), mg.asarray(normal(4, 1)) * 0 + 1, axis=0), c.sum(0))
    assert mg.vecdot(mg.asarray([100, 100], dtype="int8"), mg.asarray([1, 0], dtype="int8")).dtype == mg.int8
    check_gradients(mg.vecdot, a, b)


def test_outer():
    a, b = normal(3), normal(2)
    assert_same(mg.outer(mg.asarray(a), mg.asarray(b)), np.outer(a, b))
    check_gradients(mg.outer, a, b)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (2, 3, 4), (0, 3), (2, 3, 0), (1, 1)])
@pytest.mark.parametrize("offset", [0, 1, -1, 2, -2, 9, -9])
def test_diagonal_and_trace(shape, offset):
    a = normal(*shape)
    assert_same(mg.diagonal(mg.asarray(a), offset), np.diagonal(a, offset, -2, -1))
    assert_same(mg.linalg.trace(mg.asarray(a), offset), np.trace(a, offset, -2, -1))
    check_gradients(lambda x: mg.diagonal(x, offset) ** 2, a)


def test_the_diagonal_is_a_view():
    x = mg.zeros((2, 2))
    diagonal = mg.diagonal(x)
    diagonal[...] = 7.0
    assert x.tolist() == [[7.0, 0.0], [0.0, 7.0]]
    assert mg.linalg.trace(mg.ones((300, 300), dtype="int8")).item() == 300


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: mg.outer(mg.ones((2, 2)), mg.ones(2)), ShapeError, "outer: two vectors are needed, not shapes"),
        (lambda: mg.vecdot(mg.ones(3), mg.ones(4)), ShapeError, "vecdot: 3 elements against 4 along axis -1"),
        (lambda: mg.vecdot(mg.ones(()), mg.ones(())), AxisError, "vecdot: axis -1 does not exist"),
        (lambda: mg.diagonal(mg.ones(3)), ShapeError, r"diagonal: a matrix has two dimensions.*\(3,\)"),
        (lambda: mg.tensordot(mg.ones((2, 3)), mg.ones((2, 3)), 1), ShapeError, "tensordot: axes .* do not go"),
        (lambda: mg.tensordot(mg.ones((2, 3)), mg.ones((2, 3)), 3), ShapeError, "tensordot: 3 axes of shapes"),
        (lambda: mg.tensordot(mg.ones((2, 3)), mg.ones((2, 3)), ((0, 1), (0,))), ShapeError, "as many axes of each"),
        (lambda: mg.tensordot(mg.ones((2, 3)), mg.ones((2, 3)), ((5,), (0,))), AxisError, "axis 5 does not exist"),
    ],
)
def test_contractions_refuse_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


# einsum ---------------------------------------------------------------------------------------------------------------

EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ba", (2, 3)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("ij->j", (2, 3)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iij->j", (3, 3, 2)),
    ("iii->i", (2, 2, 2)),
    ("ijij->ji", (2, 3, 2, 3)),
    ("i,i->i", (3,), (3,)),
    ("i,j->ji", (3,), (2,)),
    ("i,i", (3,), (3,)),
    (",ij->ji", (), (2, 3)),
    ("i,ij,j", (2,), (2, 3), (3,)),
    ("bhtd,bhsd->bhts", (2, 1, 2, 3), (2, 1, 3, 3)),
    ("bthd,bshd->bhts", (1, 2, 3, 2), (1, 3, 3, 2)),
    ("bhts,bshd->bthd", (2, 3, 1, 2), (2, 2, 3, 2)),
    ("bij,bjk,bkl->bil", (2, 3, 4), (2, 4, 5), (2, 5, 2)),
    ("...ij,...jk->...ik", (5, 1, 2, 3), (4, 3, 2)),
    ("...i->i...", (2, 3, 4)),
    ("i...,...i", (3, 2), (2, 3)),
    ("...,...", (2, 3), (3,)),
    ("...ii->...", (4, 3, 3)),
    ("ij,jk->ik", (2, 1), (3, 4)),
    ("ij,ij->ij", (2, 1), (1, 3)),
    ("ij,jk,kl,lm->im", (2, 3), (3, 4), (4, 5), (5, 2)),
    ("ij,kl->ik", (2, 3), (4, 5)),
    ("ij,jk->ik", (0, 3), (3, 2)),
    ("ij,jk->ik", (2, 0), (0, 2)),
    ("a b , b -> a", (2, 3), (3,)),
]


@pytest.mark.parametrize("subscripts, shapes", [(case[0], case[1:]) for case in EINSUMS])
def test_einsum(subscripts, shapes):
    arrays = [normal(*shape) for shape in shapes]
    assert_same(mg.einsum(subscripts, *map(mg.asarray, arrays)), np.einsum(subscripts, *arrays))
    check_gradients(lambda *tensors: mg.einsum(subscripts, *tensors), *arrays)


@st.composite
def einsum_calls(draw):
    """Random subscripts with few letters, repeated sizes, an ellipsis, and sometimes a size of 1."""
    sizes = {letter: draw(st.integers(0 if letter == "d" else 1, 3)) for letter in "abcd"}
    dots = draw(st.lists(st.integers(1, 3), max_size=2))
    words, shapes = [], []
    for _ in range(draw(st.integers(1, 3))):
        letters = draw(st.lists(st.sampled_from("abcd"), max_size=3))
        stretched = set(draw(st.lists(st.sampled_from("abcd"), max_size=1)))
        shape = [1 if c in stretched and letters.count(c) == 1 else sizes[c] for c in letters]
        used = draw(st.booleans()) and dots
        at = draw(st.integers(0, len(letters)))
        if used:
            own = dots[draw(st.integers(0, len(dots))) :]
            shape[at:at] = [1 if draw(st.booleans()) else size for size in own]
            letters.insert(at, "...")
        words.append("".join(letters))
        shapes.append(tuple(shape))
    subscripts = ",".join(words)
    if draw(st.booleans()):
        named = sorted(set(subscripts) - set(",."))
        result = draw(st.permutations(named))[: draw(st.integers(0, len(named)))]
        if "..." in subscripts:
            result.insert(draw(st.integers(0, len(result))), "...")
        subscripts += "->" + "".join(result)
    return subscripts, shapes


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(einsum_calls(), st.booleans())
def test_einsum_at_random(call, whole):
    subscripts, shapes = call
    random = np.random.default_rng(1)
    arrays = [random.integers(-4, 5, shape) if whole else random.standard_normal(shape) for shape in shapes]
    assert_same(mg.einsum(subscripts, *map(mg.asarray, arrays)), np.einsum(subscripts, *arrays))


def test_einsum_is_one_product_per_pair_and_no_sum():
    with mg.record():
        out = mg.einsum("bthd,bshd->bhts", mg.ones((2, 4, 3, 5)), mg.ones((2, 6, 3, 5)))
    names = []
    stack = [out.node]
    while stack:
        node = stack.pop()
        names.append(node.name)
        stack += node.inputs
    assert names.count("matmul") == 1 and not {"sum", "multiply", "gather"} & set(names)


def test_einsum_multiplies_the_cheapest_pair_first():
    """In (1000 × 1000) @ (1000 × 1000) @ vector, the two matrices are never multiplied first."""
    a = mg.ones((1000, 1000))
    with mg.record():
        out = mg.einsum("ij,jk,k->i", a, a, mg.ones(1000))
    assert out[0].item() == 1e6
    stack = [out.node]
    while stack:
        node = stack.pop()
        assert node.size <= 1_000_000
        stack += node.inputs
        if node.op is P.matmul:
            assert node.size == 1000


def test_einsum_of_mixed_dtypes_and_small_integers():
    out = mg.einsum("i,i", mg.asarray([1, 2]), mg.asarray([0.5, 0.25]))
    assert out.dtype == mg.float32 and out.item() == 1.0
    assert mg.einsum("i->", mg.asarray([1, 2], dtype="int8")).dtype == mg.int8


@pytest.mark.parametrize(
    "subscripts, shapes, error, message",
    [
        ("ij,jk", [(2, 3)], ConversionError, "'ij,jk' is for 2 operands, not for 1"),
        ("ij", [(2,)], ShapeError, "'ij' is for 2 dimensions, its operand has 1"),
        ("i", [(2, 3)], ShapeError, "'i' is for 1 dimension, its operand has 2"),
        ("ijk...", [(2, 3)], ShapeError, "is for 3 dimensions, its operand has 2"),
        ("i1", [(2, 3)], ConversionError, "'i1' is not made of letters"),
        ("i.j", [(2, 3)], ConversionError, "is not made of letters"),
        ("...i...", [(2, 3)], ConversionError, "at most one '...'"),
        ("ij->ik", [(2, 3)], ConversionError, "the result 'ik' can't be made of the operands"),
        ("ij->ii", [(2, 3)], ConversionError, "the result 'ii'"),
        ("...i->i", [(2, 3)], ConversionError, "the result 'i'"),
        ("ij,jk->ik", [(2, 3), (4, 2)], ShapeError, "'j' has size 3 and, in operand 1, 4"),
        ("ii", [(2, 3)], ShapeError, "'i' has size 2 and, in operand 0, 3"),
        ("ii", [(1, 3)], ShapeError, "'i' has size 1 and, in operand 0, 3"),
        ("...i,...i", [(2, 3), (4, 3)], ShapeError, "a dimension of '...' has size 2 and, in operand 1, 4"),
    ],
)
def test_einsum_refuses_wrong_arguments(subscripts, shapes, error, message):
    with pytest.raises(error, match=re.escape(message)):
        mg.einsum(subscripts, *[mg.ones(shape) for shape in shapes])


def test_einsum_under_vmap():
    x, y = mg.asarray(normal(5, 2, 3)), mg.asarray(normal(3, 4))
    out = mg.vmap(lambda a: mg.einsum("ij,jk->k", a, y))(x)
    assert_same(out, np.einsum("bij,jk->bk", x.numpy(), y.numpy()))
    assert_same(mg.vmap(mg.matmul, in_axes=(0, None))(x, y), x.numpy() @ y.numpy())


def test_contractions_in_forward_mode():
    a, b, da, db = normal(2, 3), normal(3, 4), normal(2, 3), normal(3, 4)
    x, y, dx, dy = map(mg.asarray, (a, b, da, db))
    _, moved = mg.jvp(mg.matmul, (x, y), (dx, dy))
    assert_same(moved, da @ b + a @ db)
    assert_same(mg.jvp(lambda x: x @ y, (x,), (dx,))[1], da @ b)
    assert_same(mg.jvp(lambda y: x @ y, (y,), (dy,))[1], a @ db)


def test_errors_are_numpy_errors_too():
    with pytest.raises(ValueError):
        mg.ones((2, 3)) @ mg.ones((2, 3))
    with pytest.raises(TypeError):
        mg.ones((2, 3)) @ object()
    assert issubclass(DtypeError, TypeError)


@pytest.mark.parametrize("shapes", [((2,), (3,)), ((2, 3), (2, 2)), ((2, 2), (3,)), ((2, 1, 2), (2, 2)), ((), (2,))])
def test_kronecker_products_are_those_of_numpy(shapes):
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape) for shape in shapes)
    np.testing.assert_allclose(mg.kron(mg.asarray(x), mg.asarray(y)).numpy_copy(), np.kron(x, y))
    check_gradients(mg.kron, x, y)


@pytest.mark.parametrize("p", [1, 2, 3.5, np.inf])
def test_distances_of_rows(p):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 5, 4))
    expected = np.linalg.norm(x[:, :, None] - y[:, None], ord=p, axis=-1)
    np.testing.assert_allclose(mg.cdist(mg.asarray(x), mg.asarray(y), p).numpy_copy(), expected)
    check_gradients(lambda x, y: mg.cdist(x, y, p), x, y)


def test_a_distance_of_zero_has_a_gradient_of_zero():
    x = mg.ones((1, 2), requires_grad=True)
    mg.cdist(x, mg.ones((1, 2))).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0]]


def test_distances_that_make_no_sense_are_refused():
    with pytest.raises(mg.MinigradError, match=r"cdist: shapes \(2,\) and \(2,\) do not go together"):
        mg.cdist(mg.ones(2), mg.ones(2))
    with pytest.raises(mg.MinigradError, match="cdist: p is a number above 0, not 0"):
        mg.cdist(mg.ones((2, 2)), mg.ones((2, 2)), 0)
