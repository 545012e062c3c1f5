"""The hot paths that an interrupt may stop anywhere."""

import minigrad as mg
from minigrad.compile.running.steps import RUNNING
from minigrad.devices.effects import HELD, held_back
from tests.core.interrupting import Case, gradient_or_refusal

CASES = {}


def case(made):
    CASES[made.__name__] = made
    return made


@case
class EagerOp(Case):
    def __init__(self):
        self.x, self.w = mg.asarray([1.0, 2.0, 3.0]), mg.asarray([3.0, 4.0, 5.0], requires_grad=True)

    def act(self):
        self.x + self.x * 2.0
        mg.exp(self.w * self.x).sum()
        self.x.astype(mg.float64) + 1

    def after(self):
        (self.x * self.w).sum().backward()
        return self.w.grad, self.x * 2.0


@case
class View(Case):
    def __init__(self):
        self.x = mg.asarray([[1.0, 2.0], [3.0, 4.0]])

    def act(self):
        self.view = self.x[0]
        self.other = self.x.reshape((4,))[1:]

    def after(self):
        row = self.x[1]
        self.x += 1.0
        return self.x, row


@case
class InPlace(Case):
    """A write into a value that a gradient needs: the gradient never uses the new value."""

    allowed = (([1.0, 2.0], "refused"),)

    def __init__(self):
        self.x, w = mg.asarray([1.0, 2.0]), mg.asarray([3.0, 4.0], requires_grad=True)
        self.w, self.y = w, (w * self.x).sum()

    def act(self):
        self.x += 1.0

    def after(self):
        answer = gradient_or_refusal(self.y, self.w)
        return self.x, answer


@case
class Assignment(InPlace):
    allowed = (([1.0, 2.0], "refused"),)

    def act(self):
        self.x[1] = 7.0


@case
class MaskedAssignment(InPlace):
    allowed = (([1.0, 2.0], "refused"),)

    def act(self):
        self.x[self.x > 1.5] = 7.0


@case
class UpdateOfPart(InPlace):
    allowed = (([1.0, 2.0], "refused"),)

    def act(self):
        self.x[1:] += 5.0


@case
class WriteWithHistory(Case):
    def __init__(self):
        self.w = mg.asarray([1.0, 2.0], requires_grad=True)
        self.y = self.w * 3.0
        self.view = self.y[:1]

    def act(self):
        self.y[0] = self.w[1] * 10.0

    def after(self):
        y, view = self.y.detach().tolist(), self.view.detach().tolist()
        (self.y.sum() + self.view.sum()).backward()
        return y, view, self.w.grad


@case
class UpdateWithHistory(WriteWithHistory):
    def act(self):
        self.y *= self.w


@case
class LeafSwitched(Case):
    def __init__(self):
        self.x = mg.asarray([1.0, 2.0])
        self.w = mg.asarray([1.0, 2.0], requires_grad=True)

    def act(self):
        self.x.requires_grad = True
        self.w.requires_grad = False

    def after(self):
        self.x.requires_grad = self.w.requires_grad = True
        (self.x * self.w).sum().backward()
        return self.x.grad, self.w.grad


@case
class Backward(Case):
    """Either all leaves have their gradients, or none has."""

    def __init__(self):
        self.w, self.b = (mg.asarray([1.0, 2.0], requires_grad=True) for _ in range(2))
        (self.w + self.b).sum().backward()
        self.loss = ((self.w * 3.0 + self.b) ** 2).sum()

    def act(self):
        self.loss.backward()

    def after(self):
        return self.w.grad, self.b.grad


class Stepping(Case):
    """A step that writes several tensors: some may be new and others old, but the next step is right."""

    def __init__(self):
        self.parameters = [mg.asarray([1.0, 2.0], requires_grad=True) for _ in range(3)]
        self.optimizer = self.made()
        self.gradients()

    def gradients(self):
        for i, p in enumerate(self.parameters):
            p.grad = mg.asarray([0.5, 0.25]) * (i + 1.0)

    def act(self):
        self.optimizer.step()

    def stopped(self, error):
        updated = sum(p.tolist() != [1.0, 2.0] for p in self.parameters)
        if error is not None and 0 < updated < 3:
            name = type(self.optimizer).__name__
            notes = getattr(error, "__notes__", [])
            said = [f"{name}.step() was stopped: {n} of 3 parameters updated" for n in (updated, updated + 1)]
            assert any(note in said for note in notes), (updated, notes)

    def after(self):
        with mg.no_grad():
            for tensor in self.optimizer.tensors():
                tensor[...] = 0.0
            for p in self.parameters:
                p[...] = mg.asarray([1.0, 2.0])
        self.optimizer.lr = 0.1
        self.gradients()
        self.optimizer.step()
        return self.parameters


@case
class GradientDescent(Stepping):
    def made(self):
        return mg.optim.SGD(self.parameters, lr=0.1, momentum=0.9)


@case
class AdamStep(Stepping):
    def made(self):
        return mg.optim.Adam(self.parameters, lr=0.1)


@case
class Switches(Case):
    def act(self):
        with mg.no_grad(), mg.scope("a"):
            pass
        with mg.record():
            pass
        with mg.debug_nans(), mg.enable_grad():
            pass
        with mg.train.autocast():
            pass
        self.decorated()
        with mg.profile():
            pass
        with held_back():
            pass

    @staticmethod
    @mg.no_grad()
    def decorated():
        pass

    def after(self):
        return mg.is_grad_enabled(), RUNNING.get() is None, HELD.get() is None


@case
class OneSwitchTwice(Case):
    """One mode switch that is entered twice."""

    def __init__(self):
        self.off = mg.no_grad()

    def act(self):
        with self.off, self.off:
            pass

    def stopped(self, error):
        del self.off  # otherwise it would still hold the mode to restore

    def after(self):
        return mg.is_grad_enabled()


@case
class Seeding(Case):
    def __init__(self):
        self.generator = mg.random.Generator(1)
        self.generator.uniform(9)

    def act(self):
        self.generator.seed(2)

    def after(self):
        return self.generator.get_state()


@case
class Dropout(Case):
    def __init__(self):
        self.layer = mg.nn.Dropout(0.5)
        self.x = mg.ones(8)
        mg.random.seed(5)

    def act(self):
        self.layer(self.x)

    def after(self):
        return self.layer(self.x)


@case
class RunningStatistics(Case):
    def __init__(self):
        self.norm = mg.nn.BatchNorm1d(2)
        self.x = mg.asarray([[1.0, 2.0], [3.0, 5.0]])

    def act(self):
        self.norm(self.x)

    def after(self):
        return self.norm.running_mean, self.norm.running_var


@case
class Averages(Case):
    def __init__(self):
        self.w = [mg.asarray([1.0, 2.0], requires_grad=True) for _ in range(2)]
        self.ema = mg.optim.EMA(self.w, decay=0.5)
        with mg.no_grad():
            for w in self.w:
                w += 1.0

    def act(self):
        with self.ema.applied():
            pass

    def after(self):
        return self.w


@case
class Evaluation(Case):
    def __init__(self):
        self.model = mg.nn.Sequential(mg.nn.Dropout(0.5), mg.nn.Dropout(0.5))
        self.model[1].eval()

    def act(self):
        mg.train.evaluate(self.model, lambda x: self.model(x).mean(), [mg.ones(2)])

    def after(self):
        return [module.training for _, module in self.model.named_modules()]


@case
class Fit(Case):
    def __init__(self):
        self.w = mg.asarray([4.0], requires_grad=True)
        self.optimizer = mg.optim.SGD([self.w], lr=0.25)

    def step(self, x):
        self.optimizer.zero_grad()
        loss = ((self.w - x) ** 2).sum()
        loss.backward()
        self.optimizer.step()
        return loss

    def fit(self, batches):
        return mg.train.fit(self.step, batches, watch=[self.optimizer], quiet=True)["loss"]

    def act(self):
        self.fit([2.0])

    def after(self):
        now = self.w.tolist()
        with mg.no_grad():
            self.w[...] = 4.0
        return now, self.fit([2.0, 2.0])


@case
class Loading(Case):
    def __init__(self):
        self.loader = mg.data.DataLoader(mg.data.TensorDataset([1, 2, 3, 4, 5, 6]), batch_size=2, seed=0)
        self.batches = iter(self.loader)
        self.seen = next(self.batches)[0].tolist()
        self.got = []

    def act(self):
        self.got.append(next(self.batches)[0].tolist())

    def after(self):
        state = self.loader.state_dict()
        return [batch.tolist() for (batch,) in self.batches], state
