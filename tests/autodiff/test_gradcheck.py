"""gradcheck finds wrong gradients and says where."""

import pytest

import minigrad as mg


def broken(rule):
    function = mg.custom_vjp(lambda x: x * x)
    function.gradient(rule)
    return function


def test_gradcheck_accepts_right_gradients():
    x = mg.asarray([0.3, -0.8])
    assert mg.gradcheck(lambda x, y: {"a": mg.tanh(x) * y, "b": x[0]}, [x, mg.asarray([1.0, 2.0])], order=2)
    assert mg.gradcheck(lambda x, i: x[i], [x, mg.asarray([1, 0])])


def test_wrong_gradients_are_found_and_located():
    wrong = broken(lambda kept, g: g * mg.asarray([2.0, 0.0], dtype=mg.float64) * kept[0])
    message = r"gradient of input 0 is wrong at \(1,\): yours -?0, .* \(1 of 2 entries differ\)"
    with pytest.raises(mg.CheckError, match=message):
        mg.gradcheck(wrong, [mg.asarray([1.0, 3.0])])


def test_random_weights_find_what_ones_hide():
    softmax = mg.custom_vjp(lambda x: mg.exp(x) / mg.exp(x).sum())
    softmax.gradient(lambda kept, g: g * 0)
    with pytest.raises(mg.CheckError):
        mg.gradcheck(softmax, [mg.asarray([0.1, 0.7, -0.3])])


def test_a_wrong_second_order_is_found():
    wrong = broken(lambda kept, g: 2 * g * kept[0].detach())
    x = mg.asarray([1.0, 3.0])
    assert mg.gradcheck(wrong, [x])
    with pytest.raises(mg.CheckError, match="second-order gradient of input 0"):
        mg.gradcheck(wrong, [x], order=2)


def test_a_lost_gradient_is_found():
    with pytest.raises(mg.CheckError, match="yours 0"):
        mg.gradcheck(lambda x: x.detach() * x.detach(), [mg.asarray([2.0])])
