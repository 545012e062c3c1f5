"""Windows, convolutions, pooling, norms, losses and segments: errors and their messages."""

import numpy as np
import pytest

import minigrad as mg

image, kernel = mg.ones((2, 3, 5, 5)), mg.ones((4, 3, 2, 2))
rows, targets = mg.ones((4, 3)), mg.asarray([0, 2, 1, 2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mg.windows(mg.ones(3), 4), "windows: a window of 4 is longer than the dimension of 3"),
        (lambda: mg.windows(mg.ones(3), 0), "windows: size is 0"),
        (lambda: mg.windows(mg.ones((3, 3)), (2, 2), axis=(0, 0)), r"windows: axes \(0, 0\) name a dimension twice"),
        (lambda: mg.windows(mg.ones((3, 3)), (2, 2, 2), axis=(0, 1)), r"windows: size is \(2, 2, 2\)"),
        (
            lambda: mg.overlap_add(mg.ones((2, 2)), (4,)),
            r"windows of shape \(2, 2\) are not those of a tensor of shape \(4,\)",
        ),
        (lambda: mg.conv2d(mg.ones((5, 5)), kernel), r"conv2d: an input of shape \(5, 5\) has 2 dimensions"),
        (
            lambda: mg.conv2d(image, mg.ones((4, 2, 2, 2))),
            r"has 3 channels, and the weight of shape \(4, 2, 2, 2\) is for 2",
        ),
        (lambda: mg.conv2d(image, mg.ones((4, 3, 2))), r"the weight of shape \(4, 3, 2\)"),
        (lambda: mg.conv2d(image, mg.ones((4, 1, 2, 2)), groups=3), "4 and 3 channels can't be divided into 3 groups"),
        (lambda: mg.conv2d(image, kernel, mg.ones(3)), r"a bias of shape \(3,\) for 4 outputs"),
        (
            lambda: mg.conv2d(image, kernel, stride=0),
            "conv2d: stride is 0\n  Expected: an integer, 1 or more, or 2 of them",
        ),
        (lambda: mg.conv2d(image, kernel, padding=-1), "conv2d: padding is -1"),
        (lambda: mg.conv2d(image.astype(mg.int32), kernel), "conv2d is for floats"),
        (
            lambda: mg.conv_transpose2d(image, mg.ones((3, 1, 2, 2)), output_padding=1),
            r"output_padding \(1, 1\) must be smaller",
        ),
        (lambda: mg.conv_transpose2d(image, kernel), "has 3 channels, and the weight of shape .* is for 4"),
        (lambda: mg.max_pool2d(mg.ones(3), 2), r"max_pool2d: an input of shape \(3,\) has 1 dimension"),
        (lambda: mg.rms_norm(mg.ones((2, 3)), mg.ones(2)), r"rms_norm: .* has 3 channels in dimension 1"),
        (lambda: mg.rms_norm(mg.asarray(1.0)), "rms_norm: a tensor without dimensions has no rows"),
        (lambda: mg.group_norm(mg.ones((2, 3)), 2), "group_norm: .* no channels that can be divided into 2 groups"),
        (lambda: mg.instance_norm(mg.ones((2, 3))), r"instance_norm: .* only one value for each channel"),
        (lambda: mg.instance_norm(image, mg.ones(2)), "instance_norm: .* has 3 channels in dimension 1"),
        (lambda: mg.interpolate(image, 2, mode="cubic"), "interpolate: mode is 'cubic'\n  Expected: 'nearest',"),
        (lambda: mg.interpolate(image, 2, mode="linear"),
         r"the mode 'linear' does not fit an input of shape \(2, 3, 5, 5\)\n  Expected: \(examples, channels, size\)"),
        (lambda: mg.interpolate(image), "interpolate: it takes a size or a scale_factor, and not both"),
        (lambda: mg.interpolate(image, 0), "interpolate: size is 0\n  Expected: an integer, 1 or more, or 2 of them"),
        (lambda: mg.interpolate(image, scale_factor=-1), "scale_factor is -1\n  Expected: a number above 0, or 2 of"),
        (lambda: mg.interpolate(image, scale_factor=0.1), r"a scale_factor of 0.1 leaves nothing of the sizes"),
        (lambda: mg.interpolate(image, 2**45), "interpolate: shape .* has .* elements, and this machine has"),
        (lambda: mg.pixel_shuffle(image, 2), r"\(2, 3, 5, 5\) has no channels that can be divided into groups of 4"),
        (lambda: mg.pixel_shuffle(image, 0), "pixel_shuffle: factor is an integer, 1 or more, not 0"),
        (lambda: mg.binary_cross_entropy(rows, rows[0]), r"the probabilities have shape \(4, 3\) and the tar"),
        (lambda: mg.dropout2d(mg.ones((2, 3))), r"dropout2d: an input of shape \(2, 3\) has no channels of images"),
        (lambda: mg.dropout2d(image, p=2), "dropout2d: a probability is between 0 and 1, not 2"),
        (lambda: mg.batch_norm(mg.ones((2, 3))), "batch_norm: outside training it takes a running mean"),
        (lambda: mg.batch_norm(mg.ones(3), training=True), r"batch_norm: an input of shape \(3,\) has no channels"),
        (
            lambda: mg.batch_norm(mg.ones((2, 3)), mg.ones(2), mg.ones(2)),
            "batch_norm: .* has 3 channels in dimension 1",
        ),
        (lambda: mg.cross_entropy(rows, targets, weight=mg.ones(2)), r"a weight of shape \(2,\) for 3 classes"),
        (lambda: mg.cross_entropy(rows, targets, label_smoothing=2), "label_smoothing is between 0 and 1, not 2"),
        (lambda: mg.cross_entropy(rows, mg.asarray([0, 2, 1, 3]), ignore_index=1), "target 3 is out of range"),
        (lambda: mg.cross_entropy(rows, mg.ones((4,))), "cross_entropy: targets are integers, not float32"),
        (lambda: mg.huber_loss(rows, rows, delta=0), "huber_loss: delta is larger than 0, not 0"),
        (lambda: mg.smooth_l1_loss(rows, rows, beta=-1), "smooth_l1_loss: beta is 0 or more, not -1"),
        (lambda: mg.l1_loss(rows, targets), r"the prediction has shape \(4, 3\) and the target \(4,\)"),
        (lambda: mg.kl_div(rows, rows[0]), r"the log_probabilities have shape \(4, 3\) and the target \(3,\)"),
        (lambda: mg.mse_loss(rows, rows, "max"), "mse_loss: reduction is 'mean', 'sum' or 'none', not 'max'"),
        (lambda: mg.segment_sum(rows, targets, 2), "segment_sum: segment 2 is out of range, with 2 segments"),
        (lambda: mg.segment_max(rows, targets[:2], 3), r"rows of shape \(4, 3\) and segments of shape \(2,\)"),
        (lambda: mg.segment_mean(rows, rows[:, 0], 3), "segment_mean: segments are integers, not float32"),
        (lambda: mg.rotary_embedding(rows), r"an input of shape \(4, 3\) has no rows that can be cut into halves"),
    ],
)
def test_wrong_arguments_are_refused_with_a_clear_message(call, message):
    with pytest.raises(mg.MinigradError, match=message):
        call()


def test_windows_are_a_view_that_follows_its_base_and_cannot_be_written():
    x = mg.arange(5.0)
    seen = mg.windows(x, 3)
    x[0] = 10.0
    assert seen[0].tolist() == [10.0, 1.0, 2.0]
    with pytest.raises(mg.MutationError, match="one of windows: several of its elements are the same memory"):
        seen[0] = 1.0


def test_a_loss_of_ignored_targets_is_that_of_the_rest():
    logits = mg.asarray(np.random.default_rng(0).normal(size=(4, 3)), requires_grad=True)
    loss = mg.cross_entropy(logits, mg.asarray([0, -100, 1, -100]), ignore_index=-100)
    assert loss.item() == pytest.approx(mg.cross_entropy(logits[::2], mg.asarray([0, 1])).item())
    loss.backward()
    assert not logits.grad[1].any() and logits.grad[0].any()


def test_losses_are_finite_for_large_logits_and_so_are_their_gradients():
    x = mg.asarray([-1e4, 1e4, 0.0], requires_grad=True)
    mg.binary_cross_entropy_with_logits(x, mg.asarray([1.0, 0.0, 1.0])).backward()
    np.testing.assert_allclose(x.grad.numpy(), [-1 / 3, 1 / 3, -1 / 6], rtol=1e-6)


def test_gradients_of_a_cross_entropy_are_finite_where_a_probability_is_0_or_1():
    p = mg.asarray([0.0, 1.0, 0.0, 1.0, 0.25], requires_grad=True)
    mg.binary_cross_entropy(p, mg.asarray([0.0, 1.0, 1.0, 0.0, 1.0]), "sum").backward()
    assert p.grad.tolist() == [1.0, -1.0, 0.0, 0.0, -4.0]
    assert np.isnan(mg.binary_cross_entropy(mg.asarray([1.5]), mg.asarray([1.0])).item()), "1.5 is not a probability"
