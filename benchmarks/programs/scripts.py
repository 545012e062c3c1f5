"""Whole scripts, run as they are.  Each driver says what stands for the data and the games that they load."""
import sys
import types

import numpy as np
from drivers import CLONES, script
from stubs import Anything, Images, Pole, stub

GANS = "eriklindernoren/PyTorch-GAN"


def images(*shape, count=10):
    def set_shape():
        Images.shape, Images.count = shape, count

    return set_shape


script("gan", GANS, "implementations/gan/gan.py", "--batch_size 16", before=images(1, 28, 28))
script("dcgan", GANS, "implementations/dcgan/dcgan.py", "--batch_size 8", before=images(1, 32, 32))
script("wgan_gp", GANS, "implementations/wgan_gp/wgan_gp.py", "--batch_size 16", before=images(1, 28, 28))
script("aae", GANS, "implementations/aae/aae.py", "--batch_size 16", before=images(1, 32, 32))
script("acgan", GANS, "implementations/acgan/acgan.py", "--batch_size 8", before=images(1, 32, 32))
script("infogan", GANS, "implementations/infogan/infogan.py", "--batch_size 8", before=images(1, 32, 32))
script("reinforce", "seungeunrho/minimalRL", "REINFORCE.py")
script("dqn", "seungeunrho/minimalRL", "dqn.py")
script("ppo", "seungeunrho/minimalRL", "ppo.py")
script("ppo_lstm", "seungeunrho/minimalRL", "ppo-lstm.py")
script("sac", "seungeunrho/minimalRL", "sac.py")
script("ddpg", "seungeunrho/minimalRL", "ddpg.py")
script("acer", "seungeunrho/minimalRL", "acer.py")
script("dynamic_net", "jcjohnson/pytorch-examples", "nn/dynamic_net.py")
script("custom_function", "jcjohnson/pytorch-examples", "autograd/two_layer_net_custom_function.py")
MORVAN = "MorvanZhou/PyTorch-Tutorial"
script("rnn_regressor", MORVAN, "tutorial-contents/403_RNN_regressor.py")


def old_gym():
    class Old(Pole):
        def reset(self):
            return super().reset()[0]

        def step(self, action):
            state, reward, done, _, info = super().step(action)
            return state, reward, done, info

        def render(self):
            pass

    sys.modules["gym"].make = lambda name: Old()


script("morvan_dqn", MORVAN, "tutorial-contents/405_DQN_Reinforcement_learning.py", before=old_gym)
script("morvan_gan", MORVAN, "tutorial-contents/406_GAN.py")


def old_mnist():
    draw = np.random.default_rng(4)

    class Split:
        images = draw.random((256, 784)).astype(np.float32)
        labels = np.eye(10, dtype=np.float32)[draw.integers(0, 10, 256)]

        def next_batch(self, size):
            which = draw.integers(0, 256, size)
            return self.images[which], self.labels[which]

    data = types.SimpleNamespace(train=Split(), test=Split())
    for name in ("tensorflow", "tensorflow.examples", "tensorflow.examples.tutorials"):
        stub(name)
    reader = types.SimpleNamespace(read_data_sets=lambda *a, **k: data)
    stub("tensorflow.examples.tutorials.mnist", input_data=reader)


WISE = "wiseodd/generative-models"
script("wise_infogan", WISE, "GAN/infogan/infogan_pytorch.py", before=old_mnist)
script("tcn", "locuslab/TCN", "TCN/adding_problem/add_test.py", "--batch_size 8 --levels 3 --seq_len 40",
       "TCN/tcn.py TCN/adding_problem/model.py TCN/adding_problem/utils.py",
       before=lambda: (sys.path.insert(0, str((CLONES / "locuslab+TCN").resolve())), few_rows()))


def few_rows():
    from TCN.adding_problem import utils

    made = utils.data_generator
    utils.data_generator = lambda n, length: made(64, length)


script("ode_demo", "rtqichen/torchdiffeq", "examples/ode_demo.py", "--data_size 50 --batch_time 5 --batch_size 8",
       "torchdiffeq/_impl/odeint.py torchdiffeq/_impl/rk_common.py torchdiffeq/_impl/misc.py "
       "torchdiffeq/_impl/solvers.py torchdiffeq/_impl/dopri5.py torchdiffeq/_impl/interp.py",
       before=lambda: sys.path.insert(0, str((CLONES / "rtqichen+torchdiffeq").resolve())))


def vector_gym():
    class Spaces:
        class Discrete:
            n, shape = 2, ()

    class Vector:
        single_action_space = Spaces.Discrete()
        single_observation_space = types.SimpleNamespace(shape=(4,))

        def __init__(self, makers):
            self.envs = [Pole() for _ in makers]

        def reset(self, seed=0):
            return np.stack([env.reset()[0] for env in self.envs]), {}

        def step(self, actions):
            found = [env.step(int(action)) for env, action in zip(self.envs, actions)]
            states = [env.reset()[0] if done else state for env, (state, _, done, _, _) in zip(self.envs, found)]
            done = np.array([each[2] for each in found])
            return np.stack(states), np.array([each[1] for each in found]), done, np.zeros_like(done), {}

        def close(self):
            pass

    stub("gymnasium", spaces=Spaces, vector=types.SimpleNamespace(SyncVectorEnv=Vector))
    stub("tyro", cli=lambda kind: kind(num_steps=16))
    stub("torch.utils.tensorboard", SummaryWriter=Anything)


script("cleanrl_ppo", "vwxyzjn/cleanrl", "cleanrl/ppo.py", before=vector_gym)
