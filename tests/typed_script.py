"""A user's script, as type checkers read it.  They must refuse the lines that end in `# refused`, and no others."""

from collections.abc import Callable
from typing import Any, assert_type

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

assert_type(grad(loss), Callable[..., Any])
gradient = mg.grad(loss)(net, x)


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
for _ in DataLoader(mg.data.digits()[0], batch_size=8):
    break
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
