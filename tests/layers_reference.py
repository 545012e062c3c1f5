"""The layers written once more in the plainest NumPy: loops over windows, gates and edges.

No function here calls minigrad.  Everything is computed in float64.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np


def pair(value: Any, count: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


def padded(x: Any, pads: Any, value: float = 0.0) -> Any:
    return np.pad(x, [(0, 0)] * (x.ndim - len(pads)) + list(pads), constant_values=value)


def convolution(x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                groups: int = 1) -> Any:
    count = weight.ndim - 2
    steps, gaps, kernel = pair(stride, count), pair(dilation, count), weight.shape[2:]
    if padding == "same":
        pads = [((k - 1) * d // 2, (k - 1) * d - (k - 1) * d // 2) for k, d in zip(kernel, gaps)]
    else:
        pads = [p if isinstance(p, tuple) else (p, p) for p in pair(padding, count)]
    x = padded(x, pads)
    sizes = [len(range(0, n - (k - 1) * d, s)) for n, k, s, d in zip(x.shape[2:], kernel, steps, gaps)]
    out = np.zeros((len(x), len(weight), *sizes))
    inputs, outputs = x.shape[1] // groups, len(weight) // groups
    for n, o, *place in np.ndindex(out.shape):
        first = o // outputs * inputs
        for c, *within in np.ndindex(weight.shape[1:]):
            at = [p * s + i * d for p, s, i, d in zip(place, steps, within, gaps)]
            out[(n, o, *place)] += x[(n, first + c, *at)] * weight[(o, c, *within)]
    return out if bias is None else out + bias.reshape(-1, *[1] * count)


def transposed(x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
               groups: int = 1, dilation: Any = 1) -> Any:
    steps, gaps, cut, extra = pair(stride, 2), pair(dilation, 2), pair(padding, 2), pair(output_padding, 2)
    kernel, inputs, outputs = weight.shape[2:], x.shape[1] // groups, weight.shape[1]
    sizes = [(n - 1) * s + (k - 1) * d + 1 + e for n, k, s, d, e in zip(x.shape[2:], kernel, steps, gaps, extra)]
    out = np.zeros((len(x), outputs * groups, *sizes))
    for n, c, *place in np.ndindex(x.shape):
        for o, *within in np.ndindex(weight.shape[1:]):
            at = [p * s + i * d for p, s, i, d in zip(place, steps, within, gaps)]
            out[(n, c // inputs * outputs + o, *at)] += x[(n, c, *place)] * weight[(c, o, *within)]
    out = out[:, :, cut[0] : sizes[0] - cut[0], cut[1] : sizes[1] - cut[1]]
    return out if bias is None else out + bias[:, None, None]


def pooled(function: Any, outside: float, count: int, x: Any, size: Any, stride: Any = None, padding: Any = 0,
           dilation: Any = 1) -> Any:
    sizes = pair(size, count)
    steps = sizes if stride is None else pair(stride, count)
    gaps = pair(dilation, count)
    x = padded(x.astype(np.float64), [(p, p) for p in pair(padding, count)], outside)
    front = x.shape[: x.ndim - count]
    counts = [len(range(0, n - (k - 1) * d, s)) for n, k, s, d in zip(x.shape[x.ndim - count :], sizes, steps, gaps)]
    out = np.zeros((*front, *counts))
    for place in np.ndindex(*counts):
        window = [slice(p * s, p * s + (k - 1) * d + 1, d) for p, s, k, d in zip(place, steps, sizes, gaps)]
        out[(..., *place)] = function(x[(..., *window)], axis=tuple(range(-count, 0)))
    return out


def adaptive(x: Any, sizes: Any) -> Any:
    count = len(sizes)
    front, image = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
    out = np.zeros((*front, *sizes))
    for place in np.ndindex(*sizes):
        part = [slice(p * n // s, -(-(p + 1) * n // s)) for p, n, s in zip(place, image, sizes)]
        out[(..., *place)] = x[(..., *part)].mean(tuple(range(-count, 0)))
    return out


def normalised(x: Any, axes: Any, eps: float) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def along(parameter: Any, x: Any, axis: int) -> Any:
    return 1.0 if parameter is None else parameter.reshape([-1 if a == axis else 1 for a in range(x.ndim)])


def group_norm(x: Any, groups: int, weight: Any, bias: Any, eps: float = 1e-5) -> Any:
    out = normalised(x.reshape(len(x), groups, -1), 2, eps).reshape(x.shape)
    return out * along(weight, x, 1) + along(bias, x, 1)


def neighbours(extent: int, wanted: int, step: float, corners: bool) -> Any:
    """For each element of a resized row: the two elements around its place, and the share of the second one."""
    for i in range(wanted):
        place = i * (extent - 1) / max(wanted - 1, 1) if corners else (i + 0.5) * step - 0.5
        place = min(max(place, 0.0), extent - 1.0)
        first = int(place)
        yield first, min(first + 1, extent - 1), place - first


def resized(x: Any, sizes: Any, steps: Any, mode: str, corners: bool = False) -> Any:
    """Images or sequences of other sizes, one element at a time."""
    for axis, (wanted, step) in enumerate(zip(sizes, steps), start=2):
        rows = np.moveaxis(x, axis, 0)
        if mode == "nearest":
            parts = [rows[min(int(i * step), len(rows) - 1)] for i in range(wanted)]
        else:
            parts = [rows[a] * (1 - t) + rows[b] * t for a, b, t in neighbours(len(rows), wanted, step, corners)]
        x = np.moveaxis(np.stack(parts), 0, axis)
    return x


def pixel_shuffle(x: Any, r: int) -> Any:
    n, channels, height, width = x.shape
    out = np.zeros((n, channels // r**2, height * r, width * r))
    for c, i, j in np.ndindex(out.shape[1:]):
        out[:, c, i, j] = x[:, c * r**2 + i % r * r + j % r, i // r, j // r]
    return out


def log_softmax(x: Any) -> Any:
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def cross_entropy(logits: Any, targets: Any, reduction: str = "mean", weight: Any = None, ignore: Any = None,
                  smoothing: float = 0.0) -> Any:
    """One target at a time, as in the definition."""
    rows, classes = log_softmax(logits), logits.shape[-1]
    weight = np.ones(classes) if weight is None else weight
    losses, total = np.zeros(targets.shape), 0.0
    for place in np.ndindex(targets.shape):
        target = targets[place]
        if target == ignore:
            continue
        own = -weight[target] * rows[(*place, target)]
        losses[place] = (1 - smoothing) * own - smoothing * (weight * rows[place]).mean()
        total += weight[target]
    return {"none": losses, "sum": losses.sum(), "mean": losses.sum() / total}[reduction]


def segments(function: Any, x: Any, numbers: Any, count: int) -> Any:
    return np.stack([function(x[numbers == k]) for k in range(count)])


def segment_softmax(x: Any, numbers: Any, count: int) -> Any:
    out = np.zeros(x.shape)
    for k in range(count):
        rows = x[numbers == k]
        out[numbers == k] = np.exp(rows - rows.max(0)) / np.exp(rows - rows.max(0)).sum(0) if len(rows) else rows
    return out


def rotated(x: Any, positions: Any = None, base: float = 10000.0) -> Any:
    """Each pair of numbers as a complex number, turned by an angle that grows with the position."""
    half = x.shape[-1] // 2
    positions = np.arange(x.shape[-2]) if positions is None else positions
    angles = positions[..., None] * base ** (-np.arange(half) / half)
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], -1)


# Layers with a state ------------------------------------------------------------------------------------------------


def recurrent(kind: str, x: Any, weights: Any, layers: int, directions: int, size: int, h: Any, c: Any = None,
              nonlinearity: Any = np.tanh) -> Any:
    """An RNN, GRU or LSTM over (length, examples, features); weights by torch's names."""
    last_h, last_c = [], []
    for layer, direction in itertools.product(range(layers), range(directions)):
        if direction == 0:
            given, parts = x, []
        name = f"l{layer}" + "_reverse" * direction
        w, u = weights[f"weight_ih_{name}"], weights[f"weight_hh_{name}"]
        b = weights.get(f"bias_ih_{name}", np.zeros(len(w)))
        d = weights.get(f"bias_hh_{name}", np.zeros(len(w)))
        state, cell = h[layer * directions + direction], None if c is None else c[layer * directions + direction]
        outputs = []
        for row in given[::-1] if direction else given:
            left, right = row @ w.T + b, state @ u.T + d
            if kind == "rnn":
                state = nonlinearity(left + right)
            elif kind == "gru":
                r, z = sigmoid(left + right)[:, :size], sigmoid(left + right)[:, size : 2 * size]
                new = np.tanh(left[:, 2 * size :] + r * right[:, 2 * size :])
                state = (1 - z) * new + z * state
            else:
                i, f, g, o = np.split(left + right, 4, axis=1)
                cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
                state = sigmoid(o) * np.tanh(cell)
            outputs.append(state)
        parts.append(np.stack(outputs[::-1] if direction else outputs))
        last_h.append(state)
        last_c.append(cell)
        if direction == directions - 1:
            x = np.concatenate(parts, -1)
    return (x, np.stack(last_h)) if c is None else (x, np.stack(last_h), np.stack(last_c))


def cell(kind: str, state: Any, x: Any, size: int, *starts: Any, **options: Any) -> Any:
    """A cell as a layer over a sequence of one element."""
    weights = {f"{name}_l0": value for name, value in state.items()}
    _, *last = recurrent(kind, x[None], weights, 1, 1, size, *[s[None] for s in starts], **options)
    return tuple(part[0] for part in last)


def matches(q: Any, k: Any, forbidden: Any = None) -> Any:
    """The weights of attention."""
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if forbidden is not None:
        scores = np.where(forbidden, -np.inf, scores)
    return np.exp(log_softmax(scores))


def attention(q: Any, k: Any, v: Any, forbidden: Any = None) -> Any:
    return matches(q, k, forbidden) @ v


def by_head(query: Any, key: Any, value: Any, weights: Any, heads: int) -> list[Any]:
    """Queries, keys and values of each head; weights by torch's names."""
    size = query.shape[-1]
    w, b = weights["in_proj_weight"].reshape(3, size, size), weights["in_proj_bias"].reshape(3, size)
    return [
        np.swapaxes((x @ w[i].T + b[i]).reshape(*x.shape[:2], heads, size // heads), 1, 2)
        for i, x in enumerate((query, key, value))
    ]


def attention_weights(query: Any, key: Any, weights: Any, heads: int, forbidden: Any = None) -> Any:
    q, k, _ = by_head(query, key, key, weights, heads)
    return matches(q, k, forbidden)


def multihead(
    query: Any, key: Any, value: Any, weights: Any, heads: int, forbidden: Any = None, turn: Any = None
) -> Any:
    """Attention with several heads."""
    q, k, v = by_head(query, key, value, weights, heads)
    if turn is not None:
        q, k = turn(q), turn(k)
    seen = np.swapaxes(attention(q, k, v, forbidden), 1, 2).reshape(query.shape)
    return seen @ weights["out_proj.weight"].T + weights["out_proj.bias"]


def _places(x_shape: Any, size: Any, stride: Any, padding: Any, dilation: Any) -> list[Any]:
    """For each patch of images, the rows and columns of its elements in the padded image."""
    sides = [n + 2 * p for n, p in zip(x_shape, padding)]
    spans = [(k - 1) * d + 1 for k, d in zip(size, dilation)]
    starts = [range(0, n - span + 1, s) for n, span, s in zip(sides, spans, stride)]
    return [[(i + a * dilation[0], j + b * dilation[1]) for a in range(size[0]) for b in range(size[1])]
            for i in starts[0] for j in starts[1]]


def patches(x: Any, size: Any, stride: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1)) -> Any:
    wide = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(p, p) for p in padding])
    columns = [np.stack([wide[..., i, j] for i, j in places], -1)
               for places in _places(x.shape[-2:], size, stride, padding, dilation)]
    stacked = np.stack(columns, -1)
    return stacked.reshape(*stacked.shape[:-3], -1, stacked.shape[-1])


def image_of_patches(x: Any, shape: Any, size: Any, stride: Any = (1, 1), padding: Any = (0, 0),
                     dilation: Any = (1, 1)) -> Any:
    parts = x.reshape(*x.shape[:-2], -1, size[0] * size[1], x.shape[-1])
    wide = np.zeros((*parts.shape[:-2], *[n + 2 * p for n, p in zip(shape, padding)]))
    for number, places in enumerate(_places(shape, size, stride, padding, dilation)):
        for element, (i, j) in enumerate(places):
            wide[..., i, j] += parts[..., element, number]
    return wide[..., padding[0] : padding[0] + shape[0], padding[1] : padding[1] + shape[1]]


def grid_sampled(x: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros",
                 align_corners: bool = False) -> Any:
    out = np.zeros((*x.shape[:2], *grid.shape[1:3]))
    for n, i, j in np.ndindex(grid.shape[:3]):
        place = []
        for at, size in zip(grid[n, i, j], (x.shape[3], x.shape[2])):
            at = (at + 1) / 2 * (size - 1) if align_corners else ((at + 1) * size - 1) / 2
            place.append(min(max(at, 0), size - 1) if padding_mode == "border" else at)
        column, row = place
        nearest = [(int(np.rint(column)), int(np.rint(row)), 1.0)]
        around = [
            (int(np.floor(column)) + a, int(np.floor(row)) + b,
             (1 - abs(column - np.floor(column) - a)) * (1 - abs(row - np.floor(row) - b)))
            for a in (0, 1) for b in (0, 1)
        ]
        for k, m, share in nearest if mode == "nearest" else around:
            if 0 <= k < x.shape[3] and 0 <= m < x.shape[2]:
                out[n, :, i, j] += share * x[n, :, m, k]
    return out


def affine_grid(theta: Any, height: int, width: int, align_corners: bool) -> Any:
    out = np.zeros((len(theta), height, width, 2))
    for n, i, j in np.ndindex(out.shape[:3]):
        sizes = (j, width), (i, height)
        ends = [(2 * k / (size - 1) if align_corners else (2 * k + 1) / size) - 1 for k, size in sizes]
        out[n, i, j] = theta[n] @ [*ends, 1.0]
    return out
