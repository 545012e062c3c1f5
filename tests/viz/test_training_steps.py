"""Every view of a program works for common training steps, and its page is not too large."""

from xml.etree import ElementTree

import pytest

import minigrad as mg
from minigrad import nn
from minigrad.examples.names_gpt import GPT, LENGTH
from tests.training import training_step

pytestmark = pytest.mark.usefixtures("numpy_kernels")

LARGEST = 700_000  # characters of a page
VIEWS = ("fusion", "memory", "graph")


def classifier(model, examples, optimizer=mg.optim.Adam):
    def loss_of(x, y):
        return mg.cross_entropy(model(x), y)

    batch = examples, mg.asarray([1, 2])
    return training_step(loss_of, optimizer(model.parameters(), lr=0.01)), loss_of, batch


def two_convolutions(optimizer=mg.optim.Adam):
    layers = [nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.4), nn.Linear(64, 10))
    return classifier(model, mg.ones((2, 1, 8, 8)), optimizer)


def deeper_convolutions():
    layers = []
    for channels in (3, 4, 4):
        layers += [nn.Conv2d(channels, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)]
    return classifier(nn.Sequential(*layers, nn.Flatten(), nn.Linear(16, 10)), mg.ones((2, 3, 16, 16)))


def dense():
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 10))
    return classifier(model, mg.ones((2, 5)))


def letters():
    model = GPT(letters=5, width=8, heads=2, layers=1, dropout=0.1)
    optimizer = mg.optim.SGD(model.parameters(), lr=0.01)
    return training_step(model.loss, optimizer), model.loss, (mg.zeros((2, LENGTH + 1), dtype=mg.int64),)


STEPS = {
    "two convolutions": two_convolutions,
    "two convolutions, SGD": lambda: two_convolutions(mg.optim.SGD),
    "deeper convolutions": deeper_convolutions,
    "dense": dense,
    "letters": letters,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_views_of_training_steps_can_be_shown(name):
    step, loss_of, batch = STEPS[name]()
    shown = [getattr(mg.viz, view)(step, *batch) for view in VIEWS]
    shown.append(mg.viz.step(loss_of(*batch)))
    for view in shown:
        assert repr(view)
        assert len(view.to_html()) < LARGEST
        if hasattr(view, "data"):
            assert view.data()
        if hasattr(view, "to_svg"):
            ElementTree.fromstring(view.to_svg())


def update_of(model, optimizer, batches, loss=None):
    """What is said of each update, and what the last picture contains."""
    book = mg.viz.training(model, optimizer, loss or nn.MSELoss(), batches)
    return [page.say for page in book.pages[0] if ", update" in page.say], book.pages[0][-1].drawing.to_svg("")


def test_an_update_says_whether_it_goes_against_the_gradient():
    """Momentum carries the first parameter on, past the least loss, where its gradient has changed its sign."""
    model, x = nn.Linear(1, 1, bias=False), mg.ones((1, 1))
    with mg.no_grad():
        model.weight[...] = 1.0
    optimizer = mg.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    says, _ = update_of(model, optimizer, [(x, 0 * x)] * 4)
    assert says[0].endswith("changes the parameters by 0.6 in all, against the gradient; the loss was 1.")
    assert any(", not against the gradient: momentum or decay can do that" in each for each in says)
    assert all("update: SGD (lr 0.3) changes" in each for each in says)


def test_the_targets_and_the_loss_stand_in_the_picture():
    model = nn.Linear(3, 2)
    says, drawn = update_of(model, mg.optim.SGD(model.parameters(), lr=0.1), [(mg.ones((4, 3)), mg.zeros((4, 2)))] * 2)
    assert "the loss was " in says[0] and ">x</text>" in drawn and ">y</text>" in drawn
