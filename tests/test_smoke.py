"""One fast test of each room: `python3 course test --smoke` runs only these, to find serious faults quickly.

They are in one file because collecting all other tests takes longer than running these.
"""

from pathlib import Path

import numpy as np
import pytest

import minigrad as mg


def test_core_records_an_operation():
    x = mg.asarray(3.0, requires_grad=True)
    assert (x * x).node.name == "multiply" and mg.core.primitive.P.tanh.kind == "elementwise"


def test_support_explains_errors():
    with pytest.raises(mg.ShapeError, match=r"add: shapes \(2,\) and \(3,\)"):
        mg.ones(2) + mg.ones(3)


def test_arguments_name_the_wrong_one():
    with pytest.raises(mg.MinigradError, match="keepdims"):
        mg.sum(mg.ones(2), keepdims="yes")


def test_devices_compute_apart():
    assert mg.as_device("cpu:1") is not mg.as_device("cpu")
    assert (mg.ones(3, device="cpu:1") * 2).tolist() == [2.0, 2.0, 2.0]


def test_ops_multiply_matrices():
    x = mg.arange(6.0).reshape(2, 3)
    assert (x @ x.mT).sum(1).tolist() == [19.0, 64.0]


def test_autodiff_goes_back_and_transforms():
    x = mg.asarray(3.0, requires_grad=True)
    (x * x + x).backward()
    assert x.grad.item() == 7 and mg.grad(lambda x: x**3)(mg.asarray(2.0)).item() == 12


def test_control_runs_a_loop():
    assert mg.fori_loop(0, 3, lambda i, x: x * 2, mg.asarray(1.0)).item() == 8


def test_compile_runs_a_jitted_function(monkeypatch):
    monkeypatch.setenv("MINIGRAD_BACKEND", "numpy")
    assert mg.jit(lambda x: mg.sum(mg.tanh(x) * 2))(mg.zeros(3)).item() == 0


def test_eager_computes_stacks_of_matrices():
    x = mg.asarray(np.broadcast_to(2 * np.eye(2, dtype=np.float32), (3000, 2, 2)).copy())
    assert np.all(mg.linalg.det(x).numpy() == 4)


def test_scripting_turns_branches_into_nodes():
    @mg.script
    def clipped(x):
        if x.sum() > 1:
            x = x / 2
        return x

    assert clipped(mg.ones(2)).tolist() == [0.5, 0.5]


def test_nn_has_layers():
    assert mg.nn.Linear(2, 3)(mg.ones((4, 2))).shape == (4, 3)


def test_optim_takes_a_step():
    w = mg.asarray([1.0], requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=0.25)
    (w * w).sum().backward()
    optimizer.step()
    assert w.tolist() == [0.5]


def test_data_is_loaded_in_batches():
    loader = mg.data.DataLoader(mg.data.TensorDataset(np.arange(5)), batch_size=2)
    assert sum(len(batch[0]) for batch in loader) == 5


def test_io_saves_and_loads_tensors(tmp_path):
    mg.io.save_file({"w": mg.ones(2)}, tmp_path / "w.safetensors")
    assert mg.io.load_file(tmp_path / "w.safetensors")["w"].tolist() == [1.0, 1.0]


def test_distributed_sums_over_ranks():
    ranks = mg.distributed.ThreadCommunicators(2)
    assert ranks.run(lambda comm: comm.allreduce(mg.ones(1) * comm.rank).tolist()) == [[1.0], [1.0]]


def test_train_casts_to_half_precision():
    with mg.train.autocast():
        assert (mg.ones((1, 2)) @ mg.ones((2, 1))).dtype is mg.float16


def test_viz_draws_and_steps():
    x = mg.asarray(1.0, requires_grad=True)
    assert mg.viz.step(x * x).steps[-1].total.short() == "2" and "<svg" in str(mg.viz.graph(x * x)._repr_mimebundle_())


def test_course_recognises_a_mistake():
    import minigrad_course as course
    from minigrad_course.feedback import Wrong

    with pytest.raises(Wrong, match="swapped"):
        course.check("mul_grad", lambda g, out, a, b: (g * a, g * b))


def test_examples_are_listed(capsys):
    from minigrad.examples.__main__ import main

    main([])
    assert "digits_mlp" in capsys.readouterr().out


def test_distributions_have_densities():
    assert mg.distributions.Normal(0.0, 1.0).log_prob(mg.asarray(0.0)).item() == pytest.approx(-0.9189385)


def test_compat_runs_a_line_of_pytorch():
    from minigrad.compat import speaking, torch

    try:
        assert torch.cat([torch.ones(2), torch.zeros(1)], dim=0).tolist() == [1.0, 1.0, 0.0]
    finally:
        speaking.deactivate()


def test_rooms_all_have_a_smoke_test():
    tested = {name.split("_")[1] for name in globals() if name.startswith("test_")}
    there = {path.name for path in Path(mg.__file__).parent.iterdir() if (path / "__init__.py").exists()}
    assert there <= tested
