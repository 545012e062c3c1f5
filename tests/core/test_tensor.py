"""The raw array of a tensor: it can be read if it exists, and cannot be replaced."""

import numpy as np
import pytest

import minigrad as mg


@pytest.mark.parametrize(
    "value",
    [mg.asarray([3.0]), [3.0], 3.0, None, np.ones(1, "float32"), np.ones(1), np.ones((2, 2), "float32")],
    ids=["tensor", "list", "number", "None", "array", "another dtype", "another shape"],
)
def test_the_data_of_a_tensor_cannot_be_replaced(value):
    p = mg.asarray([1.0], requires_grad=True)
    with pytest.raises(mg.MutationError, match=r"the data of a tensor cannot be replaced: its views, ") as error:
        p.data = value  # as PyTorch's programs do
    assert f"an assignment of {type(value).__name__} to .data" in str(error.value)
    assert "with mg.no_grad(): x[...] = value" in str(error.value)
    assert p.tolist() == [1.0] and p.requires_grad
    with pytest.raises(mg.MutationError, match=r"Got: a change of .data in place, which is done, but is not recorded"):
        p.data *= 2
    assert p.tolist() == [2.0]


def test_an_update_of_data_gets_the_hint_of_an_update():
    p = mg.asarray([1.0], requires_grad=True)
    p.grad = mg.ones(1)
    with pytest.raises(mg.ConversionError, match=r"for p.data -= t: `with mg.no_grad.*: p -= t`"):
        p.data -= 0.1 * p.grad  # as PyTorch's programs do
    assert p.tolist() == [1.0]
    with mg.no_grad():
        p -= 0.5 * p.grad
    assert p.tolist() == [0.5]


def test_data_is_the_array_without_the_history():
    p = mg.ones(2, requires_grad=True)
    view = (p * 2)[:1]
    assert type(p.data) is np.ndarray and view.data.tolist() == [2.0]
    with mg.no_grad():
        p += 1
    assert p.data.tolist() == [2.0, 2.0] and np.shares_memory(p.data, p.detach().numpy())
    with mg.graph():
        assert (mg.ones(2) + 1).data.tolist() == [2.0, 2.0]


p = mg.ones(2)


@pytest.mark.parametrize("transform", [mg.jit, mg.vmap, lambda f: lambda x: mg.jvp(f, (x,), (x,))])
def test_data_that_is_not_there_is_refused(transform):
    with pytest.raises(mg.TraceError, match=r"^data needs the value of a tensor .*"):
        transform(lambda x: x + mg.asarray(np.tanh(x.data)))(mg.ones(2))


def test_a_jitted_function_cannot_read_the_data_of_a_parameter_which_may_change_later():
    with pytest.raises(mg.TraceError, match=r"^data needs the value of a tensor .*"):
        mg.jit(lambda x: x + float(p.data[0]))(mg.ones(2))
