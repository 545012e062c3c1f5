"""Sample calls of neural-network functions, with the plain NumPy of `layers_reference.py` as reference."""

from __future__ import annotations

import math

import numpy as np

from tests import layers_reference as plain
from tests.composed import composed
from tests.samples import values

# Convolutions -------------------------------------------------------------------------------------------------------

for _options in (
    {},
    {"stride": 2, "padding": 1},
    {"padding": "same", "dilation": 2},
    {"stride": (1, 2), "padding": (0, 1)},
    {"padding": ((1, 0), (0, 2))},
):
    composed(
        "conv2d",
        lambda m, x, w, b, o=_options: m.conv2d(x, w, b, **o),
        values(2, 2, 4, 5),
        values(3, 2, 2, 3),
        values(3),
        like=lambda x, w, b, o=_options: plain.convolution(x, w, b, **o),
    )
composed(
    "conv2d",
    lambda m, x, w: m.conv2d(x, w, groups=2),
    values(1, 4, 3, 3),
    values(2, 2, 2, 2),
    like=lambda x, w: plain.convolution(x, w, groups=2),
)
composed(
    "conv2d",
    lambda m, x, w: m.conv2d(x, w, padding="valid"),
    values(2, 3, 3),
    values(2, 2, 1, 1),
    like=lambda x, w: plain.convolution(x[None], w)[0],
)
composed(
    "conv1d",
    lambda m, x, w, b: m.conv1d(x, w, b, stride=2, padding=1, dilation=2),
    values(2, 2, 7),
    values(3, 2, 3),
    values(3),
    like=lambda x, w, b: plain.convolution(x, w, b, 2, 1, 2),
)
for _options in (
    {},
    {"stride": 2, "padding": 1, "output_padding": 1},
    {"groups": 2},
    {"stride": (1, 3), "dilation": (2, 1)},
):
    composed(
        "conv_transpose2d",
        lambda m, x, w, b, o=_options: m.conv_transpose2d(x, w, b, **o),
        values(2, 2, 2, 3),
        values(2, 2 // _options.get("groups", 1), 2, 3),
        values(2),
        like=lambda x, w, b, o=_options: plain.transposed(x, w, b, **o),
    )

composed(
    "conv_transpose1d",
    lambda m, x, w, b: m.conv_transpose1d(x, w, b, stride=2, padding=1),
    values(2, 2, 4),
    values(2, 2, 3),
    values(2),
    like=lambda x, w, b: plain.transposed(x[:, :, None], w[:, :, None], b, (1, 2), (0, 1))[:, :, 0],
)

# Pooling ------------------------------------------------------------------------------------------------------------

for _size, _stride, _padding in ((2, None, 0), (3, 2, 1), ((1, 2), 1, 0)):
    _given = {"size": _size, "stride": _stride, "padding": _padding}
    composed(
        "max_pool2d",
        lambda m, x, g=_given: m.max_pool2d(x, **g),
        values(2, 4, 5),
        like=lambda x, g=_given: plain.pooled(np.max, -math.inf, 2, x, **g),
    )
    composed(
        "avg_pool2d",
        lambda m, x, g=_given: m.avg_pool2d(x, **g),
        values(1, 2, 4, 5),
        like=lambda x, g=_given: plain.pooled(np.mean, 0.0, 2, x, **g),
    )
composed(
    "max_pool2d",
    lambda m, x: m.max_pool2d(x, 2, 1, 0, 2),
    values(2, 4, 5),
    like=lambda x: plain.pooled(np.max, -math.inf, 2, x, 2, 1, 0, 2),
)
composed(
    "max_pool1d",
    lambda m, x: m.max_pool1d(x, 3, 2, 1),
    values(2, 6),
    like=lambda x: plain.pooled(np.max, -math.inf, 1, x, 3, 2, 1),
)
composed(
    "avg_pool1d", lambda m, x: m.avg_pool1d(x, 2), values(2, 5), like=lambda x: plain.pooled(np.mean, 0.0, 1, x, 2)
)
composed(
    "adaptive_avg_pool1d",
    lambda m, x: m.adaptive_avg_pool1d(x, 3),
    values(2, 7),
    like=lambda x: plain.adaptive(x, (3,)),
)
for _wanted in ((1, 1), (2, 3), (3, 2)):
    composed(
        "adaptive_avg_pool2d",
        lambda m, x, s=_wanted: m.adaptive_avg_pool2d(x, s),
        values(2, 4, 5),
        like=lambda x, s=_wanted: plain.adaptive(x, s),
    )

# Normalisation ------------------------------------------------------------------------------------------------------

composed(
    "rms_norm",
    lambda m, x, w: m.rms_norm(x, w, eps=1e-3),
    values(2, 3, 4),
    values(4),
    like=lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3) * w,
)
composed(
    "layer_norm",
    lambda m, x, w, b: m.layer_norm(x, w, b, axis=1),
    values(2, 4, 3),
    values(4),
    values(4),
    like=lambda x, w, b: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * w[:, None]
    + b[:, None],
)
composed(
    "group_norm",
    lambda m, x, w, b: m.group_norm(x, 2, w, b),
    values(2, 4, 3),
    values(4),
    values(4),
    like=lambda x, w, b: plain.group_norm(x, 2, w, b),
)
composed(
    "batch_norm",
    lambda m, x, w, b: m.batch_norm(x, None, None, w, b, training=True),
    values(3, 2, 2),
    values(2),
    values(2),
    like=lambda x, w, b: plain.normalised(x, (0, 2), 1e-5) * w[:, None] + b[:, None],
)
composed(
    "batch_norm",
    lambda m, x, mean, var: m.batch_norm(x, mean, var),
    values(3, 2),
    values(2),
    values(2, low=0.1),
    like=lambda x, mean, var: (x - mean) / np.sqrt(var + 1e-5),
)

composed(
    "instance_norm",
    lambda m, x, w, b: m.instance_norm(x, w, b),
    values(2, 3, 4),
    values(3),
    values(3),
    like=lambda x, w, b: plain.normalised(x, 2, 1e-5) * w[:, None] + b[:, None],
)
composed(
    "instance_norm",
    lambda m, x: m.instance_norm(x, eps=1e-2),
    values(2, 2, 2, 3),
    like=lambda x: plain.normalised(x, (2, 3), 1e-2),
)

# Resampling ---------------------------------------------------------------------------------------------------------

for _options, _sizes, _steps, _mode, _corners in (
    ({"size": (4, 6)}, (4, 6), (0.5, 0.5), "nearest", False),
    ({"size": (3, 2)}, (3, 2), (2 / 3, 1.5), "nearest", False),
    ({"scale_factor": 1.5}, (3, 4), (1 / 1.5, 1 / 1.5), "nearest", False),
    ({"size": (5, 2)}, (5, 2), (0.4, 1.5), "bilinear", False),
    ({"scale_factor": (1.75, 2)}, (3, 6), (1 / 1.75, 0.5), "bilinear", False),
    ({"size": (4, 1)}, (4, 1), (0.5, 3.0), "bilinear", True),
):
    composed(
        "interpolate",
        lambda m, x, o=_options, mode=_mode, c=_corners: m.interpolate(x, **o, mode=mode, align_corners=c),
        values(1, 2, 2, 3),
        like=lambda x, given=(_sizes, _steps, _mode, _corners): plain.resized(x, *given),
    )
composed(
    "interpolate",
    lambda m, x: m.interpolate(x, size=7, mode="linear"),
    values(2, 1, 3),
    like=lambda x: plain.resized(x, (7,), (3 / 7,), "linear"),
)
composed(
    "pixel_shuffle",
    lambda m, x: m.pixel_shuffle(x, 2),
    values(2, 8, 1, 3),
    like=lambda x: plain.pixel_shuffle(x, 2),
)

# Losses -------------------------------------------------------------------------------------------------------------

_targets = np.array([0, 2, 1, 2])
for _reduction in ("mean", "sum", "none"):
    for _ignore, _smoothing in ((None, 0.0), (2, 0.0), (None, 0.25), (0, 0.25)):
        _given = (_reduction, _ignore, _smoothing)
        composed(
            "cross_entropy",
            lambda m, x, t, w, g=_given: m.cross_entropy(x, t, g[0], w, g[1], g[2]),
            values(4, 3),
            _targets,
            values(3, low=0.1),
            like=lambda x, t, w, g=_given: plain.cross_entropy(x, t, g[0], w, *g[1:]),
        )
    composed(
        "cross_entropy",
        lambda m, x, t, r=_reduction: m.cross_entropy(x, t, r),
        values(2, 2, 3),
        _targets.reshape(2, 2),
        like=lambda x, t, r=_reduction: plain.cross_entropy(x, t, r),
    )
    composed(
        "nll_loss",
        lambda m, x, t, w, r=_reduction: m.nll_loss(m.log_softmax(x), t, r, w, 0),
        values(4, 3),
        _targets,
        values(3, low=0.1),
        like=lambda x, t, w, r=_reduction: plain.cross_entropy(x, t, r, w, 0),
    )
composed("nll_loss", lambda m, x, t: m.nll_loss(m.log_softmax(x), t), values(4, 3), _targets, like=plain.cross_entropy)
composed(
    "cross_entropy",
    lambda m, x, t: m.cross_entropy(x, t, label_smoothing=0.1),
    values(4, 3),
    _targets,
    like=lambda x, t: plain.cross_entropy(x, t, smoothing=0.1),
)
composed(
    "cross_entropy",
    lambda m, x, t, w: m.cross_entropy(x, t, weight=w, label_smoothing=0.4),
    values(2, 3),
    values(2, 3, low=0.1),
    values(3),
    like=lambda x, t, w: -(plain.log_softmax(x) * (0.6 * t + 0.4 / 3) * w).sum(-1).mean(),
)
_bce = "binary_cross_entropy_with_logits"
composed(
    _bce,
    lambda m, x, t: m.binary_cross_entropy_with_logits(x, t),
    values(2, 3),
    values(2, 3, low=0.1, high=0.9),
    like=lambda x, t: -(t * np.log(plain.sigmoid(x)) + (1 - t) * np.log(plain.sigmoid(-x))).mean(),
)
composed(
    _bce,
    lambda m, x, t, w, p: m.binary_cross_entropy_with_logits(x, t, "none", w, p),
    values(2, 3),
    values(2, 3, low=0.1, high=0.9),
    values(2, 3),
    values(3, low=0.1),
    like=lambda x, t, w, p: -w * (p * t * np.log(plain.sigmoid(x)) + (1 - t) * np.log(plain.sigmoid(-x))),
)
for _reduction, _reduce in (("mean", np.mean), ("sum", np.sum), ("none", np.asarray)):
    composed(
        "binary_cross_entropy",
        lambda m, x, t, r=_reduction: m.binary_cross_entropy(x, t, r),
        values(2, 3, low=0.1, high=0.9),
        values(2, 3, low=0.1, high=0.9),
        like=lambda x, t, reduce=_reduce: reduce(-t * np.log(x) - (1 - t) * np.log(1 - x)),
    )
composed(
    "binary_cross_entropy",
    lambda m, x, t, w: m.binary_cross_entropy(x, t, "none", w),
    np.array([0.0, 1.0, 0.0, 1.0, 1e-60]),
    np.array([0.0, 1.0, 1.0, 0.25, 1.0]),
    values(5),
    like=lambda x, t, w: w * np.array([0.0, 0.0, 100.0, 75.0, 100.0]),
    smooth=False,
)
composed(
    "kl_div",
    lambda m, x, t: m.kl_div(x, t),
    values(2, 3),
    values(2, 3, low=0.1),
    like=lambda x, t: (t * (np.log(t) - x)).mean(),
)
composed("kl_div", lambda m, x: m.kl_div(x, m.zeros_like(x), "sum"), values(2, 3), like=lambda x: np.zeros(()))
composed(
    "kl_div",
    lambda m, x, t: m.kl_div(x, t, "batchmean", log_target=True),
    values(2, 3),
    values(2, 3),
    like=lambda x, t: (np.exp(t) * (t - x)).sum() / 2,
)
composed(
    "mse_loss", lambda m, x, t: m.mse_loss(x, t), values(2, 3), values(2, 3), like=lambda x, t: ((x - t) ** 2).mean()
)
composed(
    "l1_loss", lambda m, x, t: m.l1_loss(x, t, "sum"), values(2, 3), values(2, 3), like=lambda x, t: np.abs(x - t).sum()
)


def _huber(x, t, delta):
    far = np.abs(x - t)
    return np.where(far <= delta, far**2 / 2, delta * (far - delta / 2))


composed(
    "huber_loss",
    lambda m, x, t: m.huber_loss(x, t, delta=0.7),
    values(2, 3),
    values(2, 3),
    like=lambda x, t: _huber(x, t, 0.7).mean(),
)
composed(
    "smooth_l1_loss",
    lambda m, x, t: m.smooth_l1_loss(x, t, "none", beta=0.7),
    values(2, 3),
    values(2, 3),
    like=lambda x, t: _huber(x, t, 0.7) / 0.7,
)
composed(
    "smooth_l1_loss",
    lambda m, x, t: m.smooth_l1_loss(x, t, beta=0),
    values(3),
    values(3),
    like=lambda x, t: np.abs(x - t).mean(),
)
composed(
    "cosine_similarity",
    lambda m, x, y: m.cosine_similarity(x, y, axis=0),
    values(3, 2),
    values(3, 2),
    like=lambda x, y: (x * y).sum(0) / np.sqrt((x * x).sum(0) * (y * y).sum(0)),
)

# Segments and positions ---------------------------------------------------------------------------------------------

_segments = np.array([2, 0, 2, 2, 3])
composed(
    "segment_sum",
    lambda m, x, s: m.segment_sum(x, s, 4),
    values(5, 2),
    _segments,
    like=lambda x, s: plain.segments(lambda rows: rows.sum(0), x, s, 4),
)
composed(
    "segment_mean",
    lambda m, x, s: m.segment_mean(x, s, 4),
    values(5),
    _segments,
    like=lambda x, s: plain.segments(lambda rows: rows.sum(0) / max(len(rows), 1), x, s, 4),
)
composed(
    "segment_max",
    lambda m, x, s: m.segment_max(x, s, 4),
    values(5, 2, 2),
    _segments,
    like=lambda x, s: plain.segments(lambda rows: rows.max(0, initial=-np.inf), x, s, 4),
    smooth=False,
)
composed(
    "segment_max",
    lambda m, x, s: m.segment_max(x, s, 2),
    values(5, 2),
    _segments // 2,
    like=lambda x, s: plain.segments(lambda rows: rows.max(0), x, s, 2),
)
composed(
    "segment_softmax",
    lambda m, x, s: m.segment_softmax(x, s, 4),
    values(5, 2),
    _segments,
    like=lambda x, s: plain.segment_softmax(x, s, 4),
)
composed(
    "segment_softmax",
    lambda m, x, s: m.segment_softmax(x, s, 4),
    np.array([1e4, 0, -6e4, 5.0]),
    _segments[:4],
    like=lambda x, s: plain.segment_softmax(x, s, 4),
    smooth=False,
)
composed("rotary_embedding", lambda m, x: m.rotary_embedding(x), values(2, 3, 4), like=plain.rotated)
composed(
    "rotary_embedding",
    lambda m, x, p: m.rotary_embedding(x, p, base=100.0),
    values(2, 3, 4),
    np.array([5, 0, 2]),
    like=lambda x, p: plain.rotated(x, p, 100.0),
)

# Patches of images ----------------------------------------------------------------------------------------------------

for _shape, _patch in (
    ((2, 3, 4, 5), {"size": (2, 3)}),
    ((3, 4, 5), {"size": (2, 2), "stride": (2, 1), "padding": (1, 0)}),
    ((1, 2, 5, 5), {"size": (2, 2), "dilation": (2, 3), "padding": (0, 1)}),
):
    composed("unfold", lambda m, x, o=_patch: m.unfold(x, **o), values(*_shape),
             like=lambda x, o=_patch: plain.patches(x, **o))
    composed("fold", lambda m, x, o=_patch, n=_shape[-2:]: m.fold(x, n, **o),
             values(*plain.patches(np.zeros(_shape), **_patch).shape),
             like=lambda x, o=_patch, n=_shape[-2:]: plain.image_of_patches(x, n, **o))

# Places in images -----------------------------------------------------------------------------------------------------

_places = np.array([[[[-0.83, 0.31], [0.12, -1.4]], [[1.3, 0.05], [-0.21, 0.77]]]])  # none of them on an edge
for _options in (
    {}, {"align_corners": True}, {"padding_mode": "border"}, {"mode": "nearest"},
    {"mode": "nearest", "padding_mode": "border", "align_corners": True},
):
    composed(
        "grid_sample",
        lambda m, x, grid, o=_options: m.grid_sample(x, grid, **o),
        values(1, 2, 3, 4),
        _places,
        like=lambda x, grid, o=_options: plain.grid_sampled(x, grid, **o),
    )
for _corners in (False, True):
    composed(
        "affine_grid",
        lambda m, theta, c=_corners: m.affine_grid(theta, (2, 3, 2, 4), c),
        values(2, 2, 3),
        like=lambda theta, c=_corners: plain.affine_grid(theta, 2, 4, c),
    )
composed("bincount", lambda m, x: m.bincount(x), np.array([3, 1, 1, 0]), smooth=False)
composed("bincount", lambda m, x, w: m.bincount(x, w, minlength=6), np.array([3, 1, 1, 0]), values(4), smooth=False)
composed("bincount", lambda m, x: m.bincount(x, minlength=2), np.array([], int), smooth=False)
