"""A user's script, as type checkers read it.  They must refuse the lines that end in `# refused`, and no others."""

from typing import Any, assert_type

import numpy as np

import minigrad as mg
import minigrad_course as course
from minigrad import Tensor, grad, nn, no_grad
from minigrad.data import DataLoader


class Net(nn.Module):
    def __init__(self) -> None:
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        return mg.tanh(self.layer(x)) * scale


net = Net()
x = mg.ones((4, 3))
assert_type(x, mg.Tensor)
assert_type(net(x), Tensor)
assert_type(net(x, scale=2.0), Tensor)
assert_type(nn.Linear(3, 2)(x), Tensor)
net(x, size=2)  # refused
net.forwrad(x)  # refused
number: int = net(x)  # refused

mg.cat([x, x])  # refused
mg.concat([x, x])
mg.nn.Linaer(3, 2)  # refused
mg.viz.grahp(x)  # refused
mg.viz.graph(x)


# A jitted function keeps its types, and has the stages of the compiler.


@mg.jit
def loss(model: Net, x: Tensor) -> Tensor:
    return model(x).sum()


@mg.jit(static="n")
def repeated(x: Tensor, n: int) -> list[Tensor]:
    return [x] * n


class Trainer:
    @mg.jit
    def step(self, x: Tensor) -> tuple[Tensor, int]:
        return x, 1


assert_type(loss(net, x), Tensor)
assert_type(repeated(x, n=2), list[Tensor])
assert_type(Trainer().step(x), tuple[Tensor, int])
assert_type(mg.jit(net)(x), Tensor)
loss(net)  # refused
repeated("x", 2)  # refused
Trainer().step()  # refused
print(loss.graph(net, x), loss.traces, Trainer().step.program(x))
mg.jit(loss, statik="x")  # refused

# Transformations, and blocks that are decorators too.

assert_type(grad(loss)(net, x), Any)
assert_type(mg.value_and_grad(loss)(net, x), tuple[Tensor, Any])
grad(loss)(net)  # refused
grad(loss)(net, "x")  # refused
grad(loss, argnums="x")  # refused
gradient, both = mg.grad(loss, argnums=1)(net, x), mg.grad(loss, (0, 1))(model=net, x=x)
cube = mg.grad(lambda x: x**3)(2.0)
mg.value_and_grad(lambda x: (x**3).sum())(x)[0].item()


def energy(x: Any, scale: float = 1.0) -> Any:
    return scale * (x**2).sum()


def residuals(x: Tensor) -> Tensor:
    return x * x


mg.hessian(energy)(np.ones(3))
assert_type(mg.jacobian(residuals)(x), Tensor)
assert_type(mg.jacobian(residuals, mode="forward")(x), Tensor)
assert_type(mg.vmap(residuals)(x), Tensor)
assert_type(mg.vmap(loss, in_axes=(None, 0))(net, x), Tensor)
mg.vmap(residuals)(3)  # refused
slope = mg.vmap(mg.grad(lambda x: x.sum()))(x)


def added(total: Tensor, row: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    return total + row, (total, row)


assert_type(mg.scan(added, 0.0, x), tuple[Tensor, tuple[Tensor, Tensor]])
print(mg.scan(lambda total, row: (total + row, total), 0.0, x)[0].item())
mg.scan(added)  # refused
mg.scan(added, 0.0, x, revers=True)  # refused

model = nn.Sequential(nn.Linear(3, 2), mg.tanh, nn.Linear(2, 1))
assert_type(model(x), Tensor)
assert_type(model, nn.Sequential)


@no_grad()
def inference(x: Tensor) -> Tensor:
    return net(x)


assert_type(inference(x), Tensor)
with mg.no_grad(), mg.graph():
    y = x + 1
    y += net.layer.weight.sum()

optimizer = mg.optim.SGD(net.parameters(), lr=0.1)
optimizer.zero_grads()  # refused
optimizer.zero_grad()
for images, labels in DataLoader(mg.data.digits()[0], batch_size=8):
    assert_type(images, Tensor)
    assert_type(labels, Tensor)
    break
for (batch,) in DataLoader(mg.data.TensorDataset([1, 2, 3])):
    assert_type(batch, Tensor)
for text in DataLoader(["a", "b"], 2, True, collate=list):
    assert_type(text, Any)
DataLoader(mg.data.digits()[0], batchsize=8)  # refused
assert_type(x.shape, tuple[int, ...])
assert_type(mg.random.normal((3,)), Tensor)
mg.io.save_file({"x": x}, "x.safetensors")
mg.random.normall((3,))  # refused
try:
    mg.trace(net, x)
except mg.ShapeError as error:
    print(error)

course.begin("00_start", student="Ada")
course.chekc("rise")  # refused
with course.backward(lambda y, g, passed_on: {}):
    y.backward()
