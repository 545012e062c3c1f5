"""Hot paths of jitted functions and graph mode that an interrupt may stop anywhere."""

import gc

import minigrad as mg
from tests.core.interrupted_cases import CASES, case
from tests.core.interrupting import Case, gradient_or_refusal

__all__ = ["CASES"]


class JittedCase(Case):
    """A jitted function: called with one array, stopped in a call with another, and then called with both."""

    def __init__(self):
        self.a, self.b, self.c = mg.asarray([1.0, 2.0]), mg.asarray([3.0, 4.0]), mg.asarray([7.0, 6.0])
        self.w = mg.asarray([2.0, 5.0], requires_grad=True)
        self.f = FUNCTIONS.setdefault(type(self).__name__, None) or self.made()
        FUNCTIONS[type(self).__name__] = self.f
        self.call(self.a)
        self.w.grad = None

    def call(self, x):
        return self.f(x, self.b)

    def act(self):
        self.call(self.c)

    def after(self):
        return self.call(self.c), self.call(self.a), self.call(self.c)


FUNCTIONS = {}


@case
class Jitted(JittedCase):
    def made(self):
        return mg.jit(lambda x, y: (x * 2.0 + y, (x * y).sum()))


@case
class JittedProduct(JittedCase):
    def made(self):
        return mg.jit(lambda x, y: mg.tanh(x[:, None] @ y[None, :]) @ x)


@case
class JittedChoice(JittedCase):
    """A program with checked positions and a library call: the frame holds arrays while it runs."""

    def made(self):
        return mg.jit(lambda x, y: mg.concat([mg.sort(x), y])[x.astype(mg.int64) % 2] * 2.0)


@case
class JittedWrite(JittedCase):
    def made(self):
        def write(x, y):
            x += 1.0
            return x * y

        return mg.jit(write)

    def __init__(self):
        super().__init__()
        self.y = (self.w * self.a).sum()

    def act(self):
        self.call(self.a)

    allowed = (("refused", [2.0, 3.0]), ("refused", [3.0, 4.0]))

    def after(self):
        answer = gradient_or_refusal(self.y, self.w)
        return answer, self.a


@case
class JittedTwoWrites(JittedCase):
    """All writes happen, or none, or the error has a note."""

    def made(self):
        def two(x, y):
            x += 1.0
            y[...] = y * x[::-1] + mg.sort(x)

        return mg.jit(two)

    def __init__(self):
        super().__init__()
        self.a, self.b = mg.asarray([1.0, 2.0]), mg.asarray([3.0, 4.0])

    def act(self):
        self.f(self.a, self.b)

    def stopped(self, error):
        self.noted = any("in place" in note for note in getattr(error, "__notes__", ()))

    def after(self):
        if getattr(self, "noted", False):
            self.a[...], self.b[...] = mg.asarray([1.0, 2.0]), mg.asarray([3.0, 4.0])
        return self.a, self.b


@case
class JittedGradient(JittedCase):
    def made(self):
        return mg.jit(lambda w, y: ((w * y) ** 2).sum())

    def call(self, x):
        self.w.grad = None
        self.f(self.w, x).backward()
        return self.w.grad.tolist()


@case
class JittedStep(Case):
    """A training step in one program: the gradients, the state and the parameters are all written, or none."""

    def __init__(self):
        self.model = FUNCTIONS.get("step")
        if self.model is None:
            w, b = mg.asarray([1.0, 2.0], requires_grad=True), mg.asarray([0.5], requires_grad=True)
            optimizer = mg.optim.SGD([w, b], lr=0.1, momentum=0.5)

            @mg.jit
            def step(x):
                optimizer.zero_grad()
                loss = ((w * x + b) ** 2).sum()
                loss.backward()
                optimizer.step()
                return loss

            self.model = FUNCTIONS["step"] = w, b, optimizer, step
        self.start()
        self.model[3](mg.asarray([1.0, 1.0]))
        self.start()

    def start(self):
        w, b, optimizer, _ = self.model
        with mg.no_grad():
            for tensor in optimizer.tensors():
                tensor[...] = 0.0
            w[...], b[...] = mg.asarray([1.0, 2.0]), 0.5
        optimizer.lr = 0.1
        w.grad = b.grad = None

    def act(self):
        self.model[3](mg.asarray([1.0, 3.0]))

    def stopped(self, error):
        self.noted = any("in place" in note for note in getattr(error, "__notes__", ()))

    def after(self):
        w, b, _, step = self.model
        now = [w.tolist(), b.tolist(), [p if p is None else p.tolist() for p in (w.grad, b.grad)]]
        if getattr(self, "noted", False):
            now = FUNCTIONS["step result"]
        FUNCTIONS.setdefault("step result", now)
        self.start()
        loss = step(mg.asarray([2.0, 2.0]))
        return now, loss, w, b


@case
class JittedDraw(JittedCase):
    def made(self):
        generator = self.generator = mg.random.Generator(0)
        function = mg.jit(lambda x, y: x + generator.uniform(2))
        function.generator = generator
        return function

    def after(self):
        self.f.generator.seed(3)
        return self.call(self.a), self.call(self.c)


@case
class FirstCall(Case):
    def __init__(self):
        self.a, self.b = mg.asarray([1.0, 2.0]), mg.asarray([3.0, 4.0])
        self.w = mg.asarray([2.0, 5.0], requires_grad=True)

        @mg.jit
        def f(x):
            self.a[...] = x * 2.0
            return (self.w * x[:1]).sum()

        self.f = f

    def act(self):
        self.f(self.b)

    def after(self):
        loss = self.f(self.b)
        loss.backward()
        return loss, self.a, self.w.grad, gc.isenabled(), len(self.f.recordings)


@case
class Graph(Case):
    def __init__(self):
        self.x, self.w = mg.asarray([1.0, 2.0]), mg.asarray([3.0, 4.0], requires_grad=True)

    def act(self):
        with mg.graph():
            y = (self.x * self.w).sum()
            y.item()
            y.backward()
            self.x += 1.0

    def after(self):
        return self.x, self.w.grad
