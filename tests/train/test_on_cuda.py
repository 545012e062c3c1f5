"""Mixed precision, a schedule, clipping and a metric in one jitted step on `cuda`, emulated."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from tests.compile.running.test_cuda import gpu  # noqa: F401
from tests.devices import emulated

pytestmark = pytest.mark.skipif(emulated.CXX is None, reason="the emulation needs g++ and Linux")


def trained(device, mixed):
    mg.random.seed(0)
    rng = np.random.default_rng(0)
    with mg.device(device):
        model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3, bias=False))
        x, y = mg.asarray(rng.normal(size=(16, 6)).astype(np.float32)), mg.asarray(rng.integers(0, 3, 16))
        optimizer, scaler = mg.optim.SGD(model.parameters(), lr=0.5), mg.train.GradScaler(growth_interval=3)
        schedule = mg.optim.lr_scheduler.LinearLR(optimizer, 0.1)
        accuracy = mg.train.Accuracy()

        def step():
            optimizer.zero_grad()
            with mg.train.autocast(enabled=mixed):
                logits = model(x)
                loss = mg.cross_entropy(logits, y)
            scaler.scale(loss).backward()
            scaler.unscale(optimizer)
            norm = mg.optim.clip_grad_norm(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            accuracy.add(logits, y)
            return loss, norm

        run = mg.jit(step) if device == "cuda" else step
        seen = [[t.item() for t in run()] for _ in range(7)]
        assert device == "cpu" or len(run.traces) == 1
        return np.array([*np.ravel(seen), optimizer.lr, accuracy.value, scaler.get_scale()])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* encountered in dot")  # from a recording, whose memory is not written yet
def test_a_step_on_cuda_is_that_on_the_cpu(gpu):  # noqa: F811
    full, mixed = trained("cpu", False), trained("cuda", True)
    np.testing.assert_allclose(mixed, full, rtol=0.03, atol=2e-3)
    assert not np.array_equal(mixed, full)
