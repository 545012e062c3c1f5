"""A network that solves an equation: second derivatives of the network are part of its loss."""
from collections import OrderedDict

import torch
from _common import fill, numbers


class DNN(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.depth = len(layers) - 1
        self.activation = torch.nn.Tanh
        layer_list = list()
        for i in range(self.depth - 1):
            layer_list.append(("layer_%d" % i, torch.nn.Linear(layers[i], layers[i + 1])))
            layer_list.append(("activation_%d" % i, self.activation()))
        layer_list.append(("layer_%d" % (self.depth - 1), torch.nn.Linear(layers[-2], layers[-1])))
        self.layers = torch.nn.Sequential(OrderedDict(layer_list))

    def forward(self, x):
        return self.layers(x)


class PhysicsInformedNN:
    def __init__(self, X, u, nu):
        self.x = torch.tensor(X[:, 0:1], requires_grad=True).float()
        self.t = torch.tensor(X[:, 1:2], requires_grad=True).float()
        self.u = torch.tensor(u).float()
        self.nu = nu
        self.dnn = fill(DNN([2, 8, 8, 1]), scale=0.5)
        self.optimizer = torch.optim.Adam(self.dnn.parameters(), lr=1e-2)

    def net_u(self, x, t):
        return self.dnn(torch.cat([x, t], dim=1))

    def net_f(self, x, t):
        u = self.net_u(x, t)
        u_t = torch.autograd.grad(u, t, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True)[0]
        u_x = torch.autograd.grad(u, x, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, x, grad_outputs=torch.ones_like(u_x), retain_graph=True, create_graph=True)[0]
        return u_t + u * u_x - self.nu * u_xx

    def loss_func(self):
        self.optimizer.zero_grad()
        loss_u = torch.mean((self.u - self.net_u(self.x, self.t)) ** 2)
        loss_f = torch.mean(self.net_f(self.x, self.t) ** 2)
        loss = loss_u + loss_f
        loss.backward()
        return loss


def losses():
    model = PhysicsInformedNN(numbers(10, 2), numbers(10, 1, seed=3), 0.01)
    return [model.optimizer.step(model.loss_func).item() for _ in range(5)]
