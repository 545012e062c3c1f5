"""`check_gradients` compares gradients with central differences, for the tests of every room."""

import numpy as np

import minigrad as mg

EPS = 1e-6


def check_gradients(function, *arrays, order=2, rtol=2e-6, atol=1e-7, seed=0):
    """Compare the gradients of `function(*tensors)` with central differences, and theirs too with `order=2`.

    Float arrays are differentiated in float64; others are passed as they are.  Every result (one tensor or several) is
    weighted with random numbers, because with ones the gradients of many functions vanish.  Keep inputs away from
    kinks and ties by more than `EPS`.
    """
    rng = np.random.default_rng(seed)
    arrays = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in map(np.asarray, arrays)]
    weighted = _weighted(function, rng)
    for level in range(order):
        found = [g.numpy_copy() for g in _gradients(weighted, _tensors(arrays))]
        wanted = _differences(weighted, arrays)
        for number, (ours, theirs) in enumerate(zip(found, wanted)):
            what = f"order {level + 1}, float input {number}"
            scale = max(1.0, np.abs(theirs).max(initial=0))
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol * scale, err_msg=what)
        weighted = _slope(weighted, [rng.standard_normal(g.shape) for g in found])


def _tensors(arrays):
    return [mg.asarray(a, requires_grad=a.dtype.kind == "f") for a in arrays]


def _weighted(function, rng):
    """A function that returns the number `sum(weights * function(...))`.  The random weights are drawn once."""
    weights = []

    def number(*tensors):
        results = function(*tensors)
        results = [r for r in (results if isinstance(results, (tuple, list)) else [results]) if r.dtype.kind == "f"]
        if not weights:
            weights.extend(mg.asarray(rng.standard_normal(r.shape)) for r in results)
        total = mg.asarray(0.0, dtype=mg.float64)
        for result, weight in zip(results, weights):
            total = total + (result * weight).sum()
        return total

    return number


def _gradients(number, tensors, create_graph=False):
    """The gradient for each float input, zeros where the number does not depend on it."""
    inputs = [t for t in tensors if t.requires_grad]
    result = number(*tensors)
    found = [None] * len(inputs)
    if result.requires_grad:
        found = mg.gradients(result, inputs, create_graph=create_graph, allow_unused=True)
    return [mg.zeros_like(t) if g is None else g for t, g in zip(inputs, found)]


def _slope(number, directions):
    """The derivative of `number` along fixed directions: its gradient is a second derivative."""

    def slope(*tensors):
        found = _gradients(number, tensors, create_graph=True)
        total = mg.asarray(0.0, dtype=mg.float64)
        for g, direction in zip(found, directions):
            total = total + (g * mg.asarray(direction)).sum()
        return total

    return slope


def _differences(number, arrays):
    """Central differences for each float array."""
    found = []
    for which, array in enumerate(arrays):
        if array.dtype.kind != "f":
            continue
        slopes = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            ends = []
            for step in (EPS, -EPS):
                moved = array.copy()
                moved[place] += step
                ends.append(number(*_tensors([*arrays[:which], moved, *arrays[which + 1 :]])).item())
            slopes[place] = (ends[0] - ends[1]) / (2 * EPS)
        found.append(slopes)
    return found
