"""What stands for packages that a comparison does not need: no windows, no progress, no data from the net."""
import importlib
import importlib.machinery
import sys
import types

import numpy as np
import torch


class Anything:
    """Takes every call, attribute and index, and gives itself."""

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def __iter__(self):
        return iter(())


class _Stub(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


def stub(name, **members):
    """Put a module in place of a package that is not needed."""
    module = _Stub(name)
    module.__path__, module.__spec__ = [], importlib.machinery.ModuleSpec(name, None)
    module.__dict__.update(members)
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(importlib.import_module(parent), last, module)
    return module


class Images(torch.utils.data.Dataset):
    """Random images with a class each, in place of a data set that would be loaded from the net."""

    shape, count, many = (1, 28, 28), 10, 256

    def __init__(self, *args, **kwargs):
        draw = np.random.default_rng(1)
        self.images = draw.random((self.many, *self.shape)).astype(np.float32) * 2 - 1
        self.labels = draw.integers(0, self.count, self.many)

    def __len__(self):
        return self.many

    def __getitem__(self, index):
        return torch.tensor(self.images[index]), int(self.labels[index])


class Bar:
    """`tqdm` without a bar."""

    def __init__(self, iterable=(), *args, **kwargs):
        self.iterable = iterable

    def __iter__(self):
        return iter(self.iterable)

    def __len__(self):
        return len(self.iterable)

    def __getattr__(self, name):
        return Anything()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


def stubs():
    """No windows, no progress, no data from the net."""
    stub("matplotlib")
    stub("matplotlib.pyplot", subplots=lambda *a, **k: (Anything(), Anything()))
    stub("matplotlib.gridspec")
    stub("mpl_toolkits")
    stub("mpl_toolkits.mplot3d")
    for name in ("tqdm", "tqdm.auto"):
        stub(name, tqdm=Bar, trange=lambda *a, **k: Bar(range(*a)))
    stub("torchvision")
    stub("torchvision.datasets", MNIST=Images, CIFAR10=Images, FashionMNIST=Images)
    sys.modules["torchvision"].datasets = sys.modules["torchvision.datasets"]
    stub("torchvision.datasets.mnist", MNIST=Images)
    stub("torchvision.transforms")
    stub("torchvision.utils")
    stub("torchvision.models")
    for name in ("h5py", "visdom", "tensorboard", "cv2", "PIL", "gensim", "torchnet"):
        stub(name)
    stub("gym", make=lambda name, **_: Pendulum() if name.startswith("Pendulum") else Pole())
    stub("timm")
    stub("timm.models")
    stub("timm.models.layers", trunc_normal_=lambda *a, **k: torch.nn.init.trunc_normal_(*a, **k),
         DropPath=torch.nn.Identity, to_2tuple=lambda x: x if isinstance(x, tuple) else (x, x))
    stub("timm.models.registry", register_model=lambda f: f)


class Space:
    def __init__(self, n, shape):
        self.n, self.shape, self.high, self.low = n, shape, np.ones(shape) * 2, np.ones(shape) * -2

    def sample(self):
        return 0 if self.n else np.zeros(self.shape)


class Pole:
    """The cart and the pole of Barto, Sutton and Anderson, as in Gym."""

    action_space, observation_space = Space(2, ()), Space(0, (4,))
    x_threshold, theta_threshold_radians = 2.4, 0.2095

    def __init__(self):
        self.draw, self.unwrapped = np.random.default_rng(2), self

    def reset(self, **_):
        self.state, self.age = self.draw.uniform(-0.05, 0.05, 4), 0
        return self.state.astype(np.float32), {}

    def step(self, action):
        x, v, angle, turn = self.state
        force = 10.0 if action == 1 else -10.0
        pushed = (force + 0.05 * turn**2 * np.sin(angle)) / 1.1
        bend = (9.8 * np.sin(angle) - np.cos(angle) * pushed) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        move = pushed - 0.05 * bend * np.cos(angle) / 1.1
        self.state = np.array([x + 0.02 * v, v + 0.02 * move, angle + 0.02 * turn, turn + 0.02 * bend])
        self.age += 1
        done = bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095 or self.age >= 200)
        return self.state.astype(np.float32), 1.0, done, False, {}

    def close(self):
        pass


class Pendulum:
    """A pendulum that a torque swings up, as in Gym."""

    action_space, observation_space = Space(0, (1,)), Space(0, (3,))

    def __init__(self):
        self.draw = np.random.default_rng(3)

    def reset(self, **_):
        self.angle, self.turn, self.age = self.draw.uniform(-np.pi, np.pi), self.draw.uniform(-1, 1), 0
        return self._seen(), {}

    def _seen(self):
        return np.array([np.cos(self.angle), np.sin(self.angle), self.turn], np.float32)

    def step(self, action):
        u = float(np.clip(np.asarray(action).reshape(-1)[0], -2, 2))
        off = ((self.angle + np.pi) % (2 * np.pi)) - np.pi
        cost = off**2 + 0.1 * self.turn**2 + 0.001 * u**2
        self.turn = float(np.clip(self.turn + (15 * np.sin(self.angle) + 3 * u) * 0.05, -8, 8))
        self.angle += self.turn * 0.05
        self.age += 1
        return self._seen(), -cost, self.age >= 200, False, {}

    def close(self):
        pass
