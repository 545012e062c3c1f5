"""Kernels in blocks: which products and kernels run together, and what stays out of memory."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.fusion.blocks import with_blocks
from minigrad.compile.fusion.fuse import fuse
from minigrad.compile.rewriting.passes import optimise

SHAPE = (2, 3, 300, 8)


def tensors(shape=SHAPE, count=3):
    rng = np.random.default_rng(0)
    return [mg.asarray(rng.standard_normal(shape).astype("f4")) for _ in range(count)]


def blocks(function, *inputs):
    """The blocks of a function, and the names of its nodes."""
    graph, _ = optimise(mg.trace(function, *inputs))
    fused = fuse(graph)
    partition = with_blocks(fused)
    assert fused.may_have_blocks or not partition.blocks
    return list(partition.blocks.values()), partition.graph.names()


def attention(q, k, v):
    return mg.scaled_dot_product_attention(q, k, v)


def causal(q, k, v):
    return mg.scaled_dot_product_attention(q, k, v, causal=True)


def by_hand(q, k, v):
    """Attention as many people write it: one head, the mask by `where`, -∞ for forbidden keys."""
    scores = q @ k.mT / 3.0
    visible = mg.arange(q.shape[-2])[:, None] >= mg.arange(k.shape[-2])
    weights = mg.softmax(mg.where(visible, scores, -mg.inf))
    return weights @ v


def gradients(function):
    return lambda *inputs: mg.grad(lambda *xs: (function(*xs) ** 2).sum(), (0, 1, 2))(*inputs)


def test_scores_and_weights_are_only_in_scratch_memory():
    (block,), names = blocks(attention, *tensors())
    assert [names[each.node] for each in block.into] == ["matmul_1"]
    assert [(names[each.node], how.left.name) for each, how in block.out.items()] == [("matmul_2", "multiply")]
    assert len(block.inside) == 2 and block.shape == (2, 3, 300, 300) and not block.triangular


def test_the_gradient_multiplies_the_scores_again():
    forward, backward = blocks(gradients(causal), *tensors())[0]
    assert {*forward.into} < {*backward.into} and len(backward.into) == 2
    assert len(forward.out) == 1 and len(backward.out) == 3
    assert forward.triangular and backward.triangular


def test_a_training_step_of_a_module_keeps_no_scores():
    """Autodiff writes the product of the gradient of the values with the weights on its right side."""
    module = mg.nn.MultiheadAttention(16, 2, batch_first=True)

    def step(x):
        loss = (module(x, causal=True) ** 2).sum()
        return mg.grad(lambda w: (module(w, causal=True) ** 2).sum())(x), loss

    forward, backward = blocks(step, tensors((2, 300, 16), 1)[0])[0]
    assert (len(forward.out), len(backward.out)) == (1, 3)
    assert forward.triangular and backward.triangular


@pytest.mark.parametrize("function", [causal, by_hand])
@pytest.mark.parametrize("shape", [SHAPE, (300, 8)])
def test_a_causal_mask_ends_the_blocks_at_the_diagonal(function, shape):
    (block,), _ = blocks(function, *tensors(shape))
    assert block.triangular


@pytest.mark.parametrize(
    "hidden",
    [
        lambda scores, rows, columns: scores,
        lambda scores, rows, columns: mg.where(columns < rows, -1e38, scores),  # hides earlier keys
        lambda scores, rows, columns: mg.where(rows < columns, -1.0, scores),
        lambda scores, rows, columns: mg.where(rows < columns + 1, scores, -1e38),
    ],
)
def test_other_masks_have_all_columns(hidden):
    def masked(q, k, v):
        rows, columns = mg.arange(q.shape[-2])[:, None], mg.arange(k.shape[-2])
        return mg.softmax(hidden(q @ k.mT, rows, columns)) @ v

    q, k, v = tensors()
    (block,), _ = blocks(masked, q, k, v)
    assert not block.triangular
    (block,), _ = blocks(causal, q[:, :, :250], k, v)  # more keys than queries: the last keys need zeros too
    assert not block.triangular


def test_a_minimum_of_the_row_needs_all_columns():
    def odd(q, k, v):
        scores = mg.where(mg.arange(300)[:, None] < mg.arange(300), -1e38, q @ k.mT)
        return mg.softmax(scores - scores.min(-1, keepdims=True)) @ v

    (block,), _ = blocks(odd, *tensors())
    assert not block.triangular


def test_weights_that_are_a_result_stay_in_memory():
    def both(q, k, v):
        weights = mg.softmax(q @ k.mT)
        return weights, weights @ v

    (block,), names = blocks(both, *tensors())
    assert [names[node] for node in block.inside] == ["matmul_1"] and len(block.out) == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda q, k, v: mg.softmax((q @ k.mT)[..., :200]) @ v[..., :200, :],  # the kernel reads a part
        lambda q, k, v: (mg.softmax(q @ k.mT) @ v, q @ k.mT),  # the scores are a result
        lambda q, k, v: mg.softmax(q[..., :20, :] @ k[..., :20, :].mT) @ v[..., :20, :],  # small
    ],
)
def test_other_products_stay_steps(function):
    assert blocks(function, *tensors())[0] == []


def test_long_sums_stay_products():
    """A matrix product with a wide layer: computing its result again would take longer than loading it."""
    x, w = tensors((600, 256), 1)[0], tensors((256, 1024), 1)[0]
    assert blocks(lambda x, w: mg.softmax(x @ w) @ w.mT, x, w)[0] == []


def test_the_listing_shows_the_blocks():
    f = mg.jit(causal)
    text = str(f.kernels(*tensors()))
    assert "in blocks: 128 rows of 300 × 300, up to the column of the last row" in text
    assert "matmul_1 before, matmul_2 after" in text and "only in scratch memory" in text
