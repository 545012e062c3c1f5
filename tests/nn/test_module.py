"""`Module`: finding parameters, operations on all of them, names on nodes, and modules as containers."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.compile.jitted import trace
from minigrad.core.mode import current_mode


class Net(nn.Module):
    """Tensors and modules in attributes, lists, tuples and dicts."""

    def __init__(self):
        self.layers = [nn.Linear(2, 3), nn.Linear(3, 3)]
        self.heads = {"up": nn.Linear(3, 1), "down": nn.Linear(3, 1)}
        self.scale = mg.asarray([2.0], requires_grad=True)
        self.seen = mg.asarray([0.0])
        self.pair = (mg.asarray([1.0], requires_grad=True), "text")
        self.size = 3

    def forward(self, x):
        for layer in self.layers:
            x = mg.tanh(layer(x))
        return self.heads["up"](x) * self.scale - self.heads["down"](x) + self.pair[0]


NAMES = [
    "scale", "pair.0", "layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias",
    "heads.up.weight", "heads.up.bias", "heads.down.weight", "heads.down.bias",
]


@pytest.fixture(autouse=True)
def _same_numbers():
    mg.random.seed(0)


def x_of(rows=4):
    return mg.asarray(np.random.default_rng(1).normal(size=(rows, 2)).astype(np.float32))


def test_modules_and_tensors_in_attributes_are_found():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert [name for name, _ in net.named_buffers()] == ["seen"]
    assert [name for name, _ in net.named_modules()] == ["", "layers.0", "layers.1", "heads.up", "heads.down"]
    assert len(net.parameters()) == len(NAMES) and net.buffers() == [net.seen]


def test_parameters_added_later_are_found_and_frozen_ones_are_buffers():
    net = Net()
    net.layers.append(nn.Linear(3, 3))
    net.scale.requires_grad = False
    names = [name for name, _ in net.named_parameters()]
    assert "layers.2.weight" in names and "scale" not in names
    assert [name for name, _ in net.named_buffers()] == ["scale", "seen"] or "scale" in dict(net.named_buffers())


def test_a_shared_tensor_is_one_parameter_with_two_names_in_the_state():
    net = Net()
    net.layers[1].weight = net.layers[0].weight = mg.ones((3, 3), requires_grad=True)
    assert sum(p is net.layers[0].weight for p in net.parameters()) == 1
    assert {"layers.0.weight", "layers.1.weight"} <= set(net.state_dict())


def test_modules_that_hold_each_other_do_not_hang():
    one, other = Net(), Net()
    one.friend, other.friend = other, one
    assert len(one.parameters()) == 2 * len(NAMES)


def test_train_and_eval_reach_every_module_and_return_it():
    net = Net()
    assert net.training and net.eval() is net
    assert not any(module.training for _, module in net.named_modules())
    assert net.train() is net and net.heads["up"].training


def test_zero_grad_and_backward():
    net = Net()
    net(x_of()).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


@pytest.mark.parametrize("function", [int, None, "zero"])
def test_apply_takes_a_function(function):
    with pytest.raises(mg.ConversionError, match="apply: function is called with each module, not "):
        mg.nn.Linear(1, 1).apply(function)


def test_apply_visits_each_module_once_inner_ones_first():
    net, visited = Net(), []
    net.friend, net.again = Net(), net.layers[0]
    net.friend.friend = net
    assert net.apply(visited.append) is net and visited[-1] is net
    assert len(visited) == len({id(module) for module in visited}) == len(net.named_modules())
    order = [id(module) for module in visited]
    assert order.index(id(net.friend.layers[0])) < order.index(id(net.friend))


# State --------------------------------------------------------------------------------------------------------------


def test_a_state_is_a_copy_that_loads_back():
    net = Net()
    state = net.state_dict()
    before = net(x_of()).tolist()
    with mg.no_grad():
        for p in net.parameters():
            p *= 3.0
    assert net(x_of()).tolist() != before
    net.load_state_dict(state)
    assert net(x_of()).tolist() == before
    assert all(p.requires_grad for p in net.parameters()) and not any(t.requires_grad for t in state.values())


def test_loading_writes_into_the_same_tensors_and_converts():
    net = nn.Linear(2, 1)
    weight, view = net.weight, net.weight.detach()[0]
    net.load_state_dict({"weight": np.array([[1.0, 2.0]]), "bias": [3.0]})
    assert net.weight is weight and view.tolist() == [1.0, 2.0]
    assert net.weight.dtype == mg.float32 and net.bias.tolist() == [3.0]


def test_state_that_does_not_fit_lists_all_misfits_and_changes_nothing():
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    before = {name: t.tolist() for name, t in net.named_tensors()}
    state = net.state_dict() | {"0.weight": mg.ones((2, 3)), "scale": mg.ones(1), "0.bias": mg.zeros(3)}
    del state["1.bias"]
    with pytest.raises(mg.MinigradError) as error:
        net.load_state_dict(state)
    assert str(error.value).startswith(
        "load_state_dict: the state does not fit Sequential, and nothing was loaded\n"
        "  missing:    1.bias\n"
        "  unexpected: scale\n"
        "  mismatched: 0.weight is (2, 3) in the state and (3, 2) here"
    )
    assert {name: t.tolist() for name, t in net.named_tensors()} == before


def test_loading_while_a_graph_needs_the_old_values_is_noticed():
    net = nn.Linear(2, 1)
    x = mg.ones((1, 2), requires_grad=True)
    loss = net(x).sum()
    net.load_state_dict(net.state_dict())
    with pytest.raises(mg.MutationError):
        loss.backward()


def test_module_to_keeps_the_tensors_and_moves_their_values():
    net, x = Net(), x_of()
    net(x).sum().backward()
    parameters, values = net.parameters(), [p.tolist() for p in net.parameters()]
    assert net.to(mg.float64) is net
    assert net.parameters()[0] is parameters[0]
    assert {p.dtype for p in net.parameters()} == {p.grad.dtype for p in net.parameters()} == {mg.float64}
    net.to("cpu:1")
    assert {str(t.device) for t in net.parameters() + net.buffers()} == {"cpu:1"}
    assert [p.tolist() for p in net.parameters()] == values
    net(x.to("cpu:1").to(mg.float64)).sum().backward()
    assert all(p.requires_grad and p.is_leaf for p in net.parameters())


def test_module_to_keeps_integers_and_refuses_integer_parameters():
    net = nn.Linear(2, 1)
    net.steps = mg.asarray(3)
    net.to(mg.float16)
    assert net.steps.dtype == mg.int64 and net.weight.dtype == mg.float16
    with pytest.raises(mg.DtypeError, match="to: parameters stay floats, and int32 is not a float dtype"):
        net.to(mg.int32)


def test_module_to_the_same_device_changes_nothing():
    layer, seen = nn.Linear(2, 3), []
    layer.weight.register_hook(lambda g: seen.append(g.shape))
    view = layer.weight[0]
    assert layer.to("cpu").to(mg.float32) is layer
    layer(x_of()).sum().backward()
    assert seen == [layer.weight.shape]
    with mg.no_grad():
        layer.weight[0] = 7
    assert view.tolist() == [7, 7]


# Names on nodes -----------------------------------------------------------------------------------------------------


def test_nodes_carry_the_path_of_the_module():
    net = Net()
    out = net(x_of())
    scopes = {node.scope for node in _nodes(out)}
    assert {("Net",), ("Net", "layers[0]"), ("Net", "layers[1]"), ("Net", "heads[up]")} <= scopes
    with mg.scope("step"):
        assert net(x_of()).node.scope == ("step", "Net")
    assert (out * 1).node.scope == ()


def test_nodes_carry_the_path_through_lists_of_modules():
    class Stack(nn.Module):
        def __init__(self):
            self.blocks = nn.ModuleList([nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2))])

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    scopes = {node.scope for node in _nodes(Stack()(x_of()))}
    assert {("Stack", "blocks[0]"), ("Stack", "blocks[1]", "0")} <= scopes


def test_a_trace_numbers_the_models_of_one_class_in_the_order_of_their_calls():
    """Two models without a name were one part of every picture."""
    first, second = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 2))

    def run(x):
        with mg.no_grad():
            y = second(x)
        return second(first(x + y)) + nn.functional_call(first, dict(first.named_tensors()), y)

    scopes = [node.scope for node in trace(run, x_of()).nodes if node.name == "matmul"]
    assert scopes == [("Sequential", "0"), ("Sequential 2", "0"), ("Sequential", "0"), ("Sequential 2", "0")]
    assert first(x_of()).node.scope == second(x_of()).node.scope == ("Sequential", "0"), "eager mode has no end"


@pytest.mark.slow
def test_a_module_keeps_nothing_of_a_transformation_alive():
    net, seen = Net(), []

    def run(x):
        seen.append(weakref.ref(current_mode().interpreter))
        return net(x)

    mg.vmap(run)(x_of())
    gc.collect()
    assert seen and not any(interpreter() for interpreter in seen)


def test_the_mode_is_restored_after_an_error():
    with pytest.raises(mg.ShapeError):
        Net()(mg.ones((1, 5)))
    assert mg.ones(1, requires_grad=True).node.scope == ()


def test_modules_obey_the_mode_they_are_called_in():
    net, x = Net(), x_of()
    assert net(x).requires_grad
    with mg.no_grad():
        assert not net(x).requires_grad
    assert net(x).requires_grad


def _nodes(tensor):
    from minigrad.core.node import topological_order

    return [node for node in topological_order([tensor.node]) if node.op is not None]


# Modules as containers ----------------------------------------------------------------------------------------------


def test_grad_takes_a_module_and_returns_one_of_gradients():
    net, x = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)), x_of()

    def loss(model, x):
        return (model(x) ** 2).mean()

    gradient = mg.grad(loss)(net, x)
    loss(net, x).backward()
    assert isinstance(gradient, nn.Sequential) and gradient is not net
    for (name, p), (_, g) in zip(net.named_parameters(), gradient.named_tensors()):
        np.testing.assert_allclose(g.numpy_copy(), p.grad.numpy_copy(), rtol=1e-5, atol=1e-7, err_msg=name)


def test_jvp_and_vmap_take_modules():
    net, x = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), x_of(1)
    value, change = mg.jvp(lambda model: model(x), (net,), (net,))
    eps = 1e-3
    moved = nn.functional_call(net, {n: t * (1 + eps) for n, t in net.named_parameters()}, x)
    np.testing.assert_allclose(change.detach().numpy(), ((moved - value) / eps).detach().numpy(), rtol=1e-2, atol=1e-3)
    rows = x_of(5)
    batched = mg.vmap(net)(rows)
    np.testing.assert_allclose(batched.detach().numpy(), net(rows).detach().numpy(), rtol=1e-6)


def test_functional_call_uses_other_tensors_and_leaves_the_module_alone():
    net, x = Net(), x_of()
    before = net(x).tolist()
    zeros = {name: mg.zeros_like(t, dtype=t.dtype) for name, t in net.named_tensors()}
    assert nn.functional_call(net, zeros, x).tolist() == [[0.0]] * 4
    assert net(x).tolist() == before
    with pytest.raises(mg.ConversionError, match=r"Net has no tensor named 'layers.7.weight'\n  Expected: scale, "):
        nn.functional_call(net, {"layers.7.weight": mg.ones(1)}, x)


def test_functional_call_takes_the_arguments_one_by_one():
    for call in (nn.Linear(2, 1), lambda x: nn.functional_call(nn.Linear(2, 1), {}, x)):
        with pytest.raises(mg.ConversionError, match=r"x is not a tensor[^$]*f\(x, y\), not f\(\(x, y\)\)"):
            call((mg.ones(2),))


def test_functional_call_replaces_a_shared_tensor_everywhere():
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    net[1].weight = net[0].weight
    doubled = mg.asarray([[2.0, 0.0], [0.0, 2.0]])
    assert nn.functional_call(net, {"0.weight": doubled}, mg.ones(2)).tolist() == [4.0, 4.0]


def test_copies_and_pickles():
    net, x = Net(), x_of()
    before = net(x).tolist()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other(x).tolist() == before
        with mg.no_grad():
            other.scale += 1.0
        assert net(x).tolist() == before


# Text and errors ----------------------------------------------------------------------------------------------------


def test_repr_is_a_tree():
    assert repr(Net()) == (
        "Net(31 parameters\n  scale: float32 (1,)\n  seen: float32 (1,), buffer\n  pair.0: float32 (1,)\n"
        "  layers.0: Linear(2 → 3)\n  layers.1: Linear(3 → 3)\n"
        "  heads.up: Linear(3 → 1)\n  heads.down: Linear(3 → 1)\n)"
    )
    nested = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Dropout(0.1))
    inner = "Sequential(0 parameters\n    0: ReLU()\n  )"
    assert repr(nested) == f"Sequential(0 parameters\n  0: {inner}\n  1: Dropout(0.1)\n)"


def test_a_module_without_forward_says_so():
    class Empty(nn.Module):
        pass

    with pytest.raises(NotImplementedError, match="Empty has no forward method"):
        Empty()(1)


def test_a_result_that_hangs_on_a_module_cannot_be_moved():
    net = nn.Linear(2, 1)
    net.last = net(mg.ones(2))
    with pytest.raises(mg.ConversionError, match="keep results of operations out of a module's attributes"):
        net.to(mg.float64)


# Hooks, partial states, tables, paths -------------------------------------------------------------------------------


def test_hooks_see_and_change_inputs_and_outputs_until_they_are_removed():
    layer, seen = nn.Linear(2, 2), []
    x = mg.ones((1, 2))
    plain = layer(x).tolist()
    first = layer.register_forward_pre_hook(lambda module, args: seen.append((module, args)))
    second = layer.register_forward_pre_hook(lambda module, args: args[0] * 0)
    third = layer.register_forward_hook(lambda module, args, output: output + args[0].sum())
    assert layer(x).tolist() == [layer.bias.tolist()] and seen == [(layer, (x,))]
    for handle in (second, third, third):
        handle.remove()
    assert layer(x).tolist() == plain and len(seen) == 2
    with layer.register_forward_hook(lambda module, args, output: None):
        assert layer(x).tolist() == plain
    first.remove()
    layer(x)
    assert len(seen) == 3
    with pytest.raises(mg.ConversionError, match="a hook is a function, not an int"):
        layer.register_forward_hook(3)


def test_hooks_are_recorded_by_jit_and_kept_by_functional_call(numpy_kernels):
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lambda module, args, output: output * 0)
    x = mg.ones((1, 2))
    assert mg.jit(lambda x: layer(x))(x).tolist() == [[0.0, 0.0]]
    assert nn.functional_call(layer, {}, x).tolist() == [[0.0, 0.0]]
    assert copy.deepcopy(layer)(x).tolist() != [[0.0, 0.0]], "a hook belongs to the module that it was added to"


def test_a_state_is_loaded_in_part_if_it_need_not_be_strict():
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    bias = net[1].bias.tolist()
    loaded = net.load_state_dict({"0.bias": [1.0, 2.0, 3.0], "head": mg.ones(1)}, strict=False)
    assert loaded == (["0.weight", "1.weight", "1.bias"], ["head"])
    assert net[0].bias.tolist() == [1.0, 2.0, 3.0] and net[1].bias.tolist() == bias
    with pytest.raises(mg.MinigradError, match=r"was loaded\n.*\n.*\n  mismatched: 0.bias is \(2,\) in the state"):
        net.load_state_dict({"0.bias": [1.0, 2.0], "0.weight": mg.ones((3, 2)), "head": 1.0}, strict=False)
    assert net[0].bias.tolist() == [1.0, 2.0, 3.0]


def test_an_error_says_which_module_it_comes_from():
    class Model(nn.Module):
        def __init__(self):
            self.encoder = [nn.Sequential(nn.Linear(2, 3), nn.Conv2d(1, 2, 3))]

        def forward(self, x):
            return self.encoder[0](x)

    for shape, message in (
        ((5, 4), r"in Model.encoder.0.0: an input of shape \(5, 4\) does not fit Linear\(2 → 3\)"),
        ((1, 2), r"in Model.encoder.0.1: an input of shape \(1, 3\) does not fit Conv2d\(1 → 2, 3 × 3\)"),
    ):
        with pytest.raises(mg.ShapeError, match=f"^{message}\n  Expected: "):
            Model()(mg.ones(shape))
        with pytest.raises(mg.ShapeError, match=f"^{message}"):
            mg.jit(Model())(mg.ones(shape))


def test_a_summary_counts_shapes_parameters_and_work_and_computes_nothing():
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 64, 10))
    table = model.summary(mg.ones((2, 1, 8, 8)))
    rows = {row.path: row for row in table}
    assert [row.path for row in table] == ["", "0", "1", "2", "3"]
    assert rows["0"].output == "(2, 4, 8, 8)" and rows["0"].parameters == 40 and rows["0"].bytes == 160
    assert rows["3"].flops == 2 * 2 * 256 * 10 + 2 * 10 and rows["2"].flops == 0
    assert rows["0"].flops >= 2 * 2 * 64 * 4 * 9
    assert rows[""].parameters == sum(p.size for p in model.parameters())
    assert rows[""].flops == sum(rows[str(i)].flops for i in range(4))
    assert model[1].num_batches_tracked.item() == 0, "the running statistics were touched"
    assert all(module._hooks is None or not module._hooks.added for _, module in model.named_modules())
    assert str(table).splitlines()[0].split() == ["module", "type", "output", "parameters", "bytes", "flops"]
    unused = nn.ModuleDict({"a": nn.Linear(1, 1)})
    unused.forward = lambda x: x * 2
    assert [row.output for row in unused.summary(mg.ones(3))] == ["(3,)", "not called"]


# What forward stores ------------------------------------------------------------------------------------------------


class Storing(nn.Module):
    def __init__(self):
        self.layer, self.norm, self.late = nn.Linear(2, 2), None, None
        self.running = mg.zeros(2)

    def forward(self, x):
        if self.norm is None:
            self.norm = nn.BatchNorm1d(2)
            self.scale = mg.ones(2, requires_grad=True)
        h = self.norm(self.layer(x)) * self.scale
        self.last = self.late = h
        self.pair = [x, h]
        self.running = h.mean(0)
        return h


PARAMETERS = ["layer.weight", "layer.bias", "norm.weight", "norm.bias", "scale"]
BUFFERS = ["running", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"]


def test_activations_that_forward_stores_are_not_part_of_the_state():
    net = Storing()
    for gradients in (True, False, True):
        with mg.enable_grad() if gradients else mg.no_grad():
            out = net(x_of())
        assert net.last is out and net.late is out and net.pair[1] is out
        assert sorted(name for name, _ in net.named_parameters()) == sorted(PARAMETERS)
        assert sorted(name for name, _ in net.named_buffers()) == sorted(BUFFERS)
        assert set(net.state_dict()) == {*PARAMETERS, *BUFFERS}


def test_a_tensor_set_outside_of_forward_is_part_of_the_state_again():
    net = Storing()
    net(x_of())
    net.last, net.head = mg.zeros(2), mg.ones(1, requires_grad=True)
    assert {"last", "head"} <= set(net.state_dict()) and "head" in dict(net.named_parameters())
    net(x_of())
    assert "last" in dict(net.named_buffers()), "a buffer that forward replaces stays a buffer"


def test_copies_and_other_scopes_distinguish_activations_too():
    net = Storing()
    net(x_of())
    with mg.no_grad():
        net(x_of())
    for copied in (copy.deepcopy(net), pickle.loads(pickle.dumps(net)), copy.copy(net)):
        assert set(copied.state_dict()) == {*PARAMETERS, *BUFFERS} and copied.last.shape == (4, 2)
    with mg.scope("block"):
        assert "running_mean" in nn.BatchNorm1d(2).state_dict()


def test_parameters_that_are_results_count_in_a_copy_with_other_tensors():
    """Fast weights of meta-learning: a functional call with results of operations, and their sum of squares."""
    class Weighed(nn.Linear):
        def forward(self, x):
            return sum((p * p).sum() for p in self.parameters())

    layer = Weighed(2, 1)
    weight, bias = mg.asarray([[1.0, 2.0]], requires_grad=True), mg.asarray([3.0], requires_grad=True)
    total = nn.functional_call(layer, {"weight": weight * 1, "bias": bias * 1}, None)
    assert total.item() == 14.0


def test_a_buffer_that_holds_a_result_is_not_a_parameter():
    net = Storing()
    net.running[...] = net.layer(mg.ones(2))
    assert net.running.requires_grad and "running" not in dict(net.named_parameters())
    assert "running" in net.state_dict()


class Watched(nn.Linear):
    def forward(self, x):
        self.last = super().forward(x)
        return self.last * 2


def test_transformations_leave_activations_alone():
    """An activation with a history is not an argument: the output does not depend on it, and its history is over."""
    def loss(net):
        return (net(x_of()) ** 2).sum()

    net = Watched(2, 1)
    new = mg.grad(loss)(net)
    loss(net).backward()
    for _ in range(2):
        gradients = mg.grad(loss)(net)
        assert gradients.bias.tolist() == new.bias.tolist() and gradients.last is net.last
        loss(net)
    assert mg.jvp(loss, (net,), (net,))[0].item() == loss(net).item()
    before = net.last
    nn.functional_call(net, {"bias": net.bias + 1}, x_of())
    assert net.last is before, "the copy has activations of its own"


class Masked(nn.Module):
    unsaved = ("table",)

    def __init__(self):
        self.weight = mg.ones(2, requires_grad=True)
        self.table = [mg.zeros(2), mg.ones(3)]
        self.register_buffer("mask", mg.ones(2), persistent=False)
        self.register_buffer("mean", mg.zeros(2))


def test_unsaved_tables_move_with_the_module_but_are_not_in_its_state():
    module = Masked()
    assert list(module.state_dict()) == ["weight", "mean"]
    assert [name for name, _ in module.named_buffers()] == ["table.0", "table.1", "mask", "mean"]
    assert module.to(mg.float64).mask.dtype == mg.float64 and copy.deepcopy(module).mask.shape == (2,)
    loaded = Masked().load_state_dict(module.state_dict())
    assert not loaded.missing and not loaded.unexpected
    module.register_buffer("mask", mg.ones(2))
    assert "mask" in module.state_dict()
    with pytest.raises(mg.ConversionError, match="tensor is a tensor or None, not "):
        module.register_buffer("mask", [1.0])
    with pytest.raises(mg.ConversionError, match="persistent is True or False, not 1"):
        module.register_buffer("mask", None, persistent=1)


def test_a_parameter_is_saved_also_under_an_unsaved_name():
    module = Masked()
    module.mask = mg.ones(2, requires_grad=True)
    assert "mask" in module.state_dict()


def test_unsaved_tables_are_inputs_of_compiled_functions():
    module = Masked()
    f = mg.jit(lambda x: x * module.mask)
    assert f(mg.ones(2)).tolist() == [1.0, 1.0]
    module.mask = mg.zeros(2)
    assert f(mg.ones(2)).tolist() == [0.0, 0.0]
