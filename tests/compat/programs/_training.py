"""A step of a program's model on fixed data, for the tests of jit and views."""
import importlib

import torch
from _common import fill, integers, numbers
from torch.nn import functional as F

IMAGES, LABELS = torch.from_numpy(numbers(4, 3, 8, 8)), torch.from_numpy(integers(3, 4))
WORDS = torch.from_numpy(integers(8, 4, 8) + 1)
TRAININGS = {
    "gpt": (lambda program: program.GPT(program.Config()), lambda model: model(WORDS, WORDS)[1]),
    "cnn": (lambda program: program.ConvNet(), lambda model: F.cross_entropy(model(IMAGES), LABELS)),
    "vit": (lambda program: program.ViT(), lambda model: F.cross_entropy(model(IMAGES), LABELS)),
    "transformer": (lambda program: program.Model(),
                    lambda model: F.cross_entropy(model(WORDS, WORDS)[0].permute(0, 2, 1), WORDS)),
    "lora": (lambda program: program.Net(), lambda model: F.mse_loss(model(IMAGES[:, 0, 0, :6]), LABELS.float())),
}


def training(name):
    make, loss_of_model = TRAININGS[name]
    model = fill(make(importlib.import_module(name)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def loss_of():
        return loss_of_model(model)

    def step():
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    return step, loss_of
