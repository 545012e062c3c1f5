"""The training loop and its parts: progress bars, metrics, early stopping, histories, and errors for nans."""

import sys

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.train import Accuracy, EarlyStopping, History, Mean, Metric, NanGuard, Perplexity, evaluate, fit, progress

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
BATCHES = [(mg.asarray(X[i : i + 16]), mg.asarray(Y[i : i + 16])) for i in range(0, 60, 16)]  # the last is smaller


def learner(mode="eager", metric=None):
    """A model, its optimizer, and a training step in this mode."""
    mg.random.seed(1)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 3))
    optimizer = mg.optim.Adam(model.parameters(), lr=0.05)

    def step(x, y):
        optimizer.zero_grad()
        logits = model(x)
        loss = mg.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        if metric is not None:
            metric.add(logits, y)
        return {"loss": loss, "largest": logits.max()}

    def in_graph_mode(x, y):
        with mg.graph():
            return step(x, y)

    return model, optimizer, {"eager": step, "graph": in_graph_mode, "jit": mg.jit(step)}[mode]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["eager", "graph", "jit"])
def test_fit_equals_a_loop_written_by_hand(mode, numpy_kernels):
    metric, other = Accuracy(), Accuracy()
    model, optimizer, step = learner(mode, metric)
    history = fit(step, BATCHES, epochs=4, watch=[model, optimizer], quiet=True)
    model, optimizer, step = learner("eager", other)
    for row in history:
        seen = [(step(x, y), len(x)) for x, y in BATCHES]
        for name in ("loss", "largest"):
            mean = sum(numbers[name].item() * count for numbers, count in seen) / 60
            assert row[name] == pytest.approx(mean, rel=1e-4)
    assert metric.value == other.value > 0.6 and metric.count.item() == 240
    assert history["loss"][-1] < 0.8 * history["loss"][0] and len(history) == 4


@pytest.mark.slow
def test_a_jitted_step_is_traced_once_for_each_size_of_batch_with_validation_in_between(numpy_kernels):
    model, _, step = learner("jit")

    def validate():
        return evaluate(model, lambda x, y: {"loss": mg.cross_entropy(model(x), y)}, BATCHES)

    history = fit(step, BATCHES, epochs=3, validate=validate, quiet=True)
    assert len(step.traces) == 2 and [list(row) for row in history] == [["loss", "largest", "val_loss"]] * 3
    assert all(module.training for _, module in model.named_modules())


def test_evaluate_counts_examples_and_leaves_the_model_as_it_was():
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 3), nn.Dropout(0.5))
    model[2].eval()
    right = []

    def function(x, y):
        assert not mg.is_grad_enabled() and not model.training
        right.append((mg.argmax(model(x), axis=-1) == y).sum().item())
        return {"accuracy": (mg.argmax(model(x), axis=-1) == y).astype(mg.float32).mean(), "one": 1}

    found = evaluate(model, function, BATCHES)
    assert found == {"accuracy": pytest.approx(sum(right) / 60), "one": 1.0}
    assert [module.training for _, module in model.named_modules()] == [True, True, True, False]


def test_callbacks_get_every_step_and_every_validation():
    model, received, logged = nn.Linear(4, 3), [], []

    class Board:
        def log(self, step, **numbers):
            logged.append((step, sorted(numbers)))

    def callback(step, model, **numbers):
        received.append((step, model, numbers))

    fit(lambda x, y: model(x).sum(), BATCHES, epochs=2, validate=lambda: 7, callbacks=[callback, Board()],
        model=model, quiet=True)
    assert [step for step, _, _ in received] == [1, 2, 3, 4, 4, 5, 6, 7, 8, 8]
    assert logged[3:5] == [(4, ["loss", "model"]), (4, ["model", "val_loss"])]
    assert all(owner is model for _, owner, _ in received) and received[4][2] == {"val_loss": 7.0}
    assert not received[0][2]["loss"].requires_grad  # keeping it does not keep a graph


def test_early_stopping_and_the_best_model():
    model = nn.Linear(1, 1, bias=False)
    stop = EarlyStopping(patience=1, name="val_score", mode="max", min_delta=0.5, model=model)
    scores = iter([1.0, 2.0, 2.4, 9.0, float("nan"), 8.0, 99.0])

    def step(x):
        with mg.no_grad():
            model.weight += 1.0
        return x

    with mg.no_grad():
        model.weight[...] = 0.0
    history = fit(step, [1.0], epochs=20, validate=lambda: {"score": next(scores)}, stop=stop, quiet=True)
    assert len(history) == 6 and stop.best == 9.0 and stop.best_at == 4 and model.weight.item() == 6.0
    stop.restore()
    assert model.weight.item() == 4.0


def test_the_same_number_again_is_not_better():
    stop = EarlyStopping(patience=1)
    assert [stop.after(1.0) for _ in range(3)] == [False, False, True] and stop.best_at == 1


def test_early_stopping_continues_from_a_checkpoint(tmp_path):
    model = nn.Linear(1, 1)
    stop = EarlyStopping(patience=1, model=model)
    best = model.weight.item()
    assert not stop.after(2.0) and not stop.after(3.0)
    mg.io.save_checkpoint(tmp_path / "here", stop=stop)
    with mg.no_grad():
        model.weight += 1.0
    resumed = EarlyStopping(patience=1, model=model)
    mg.io.load_checkpoint(tmp_path / "here", stop=resumed)
    assert (resumed.best, resumed.best_at) == (2.0, 1) and resumed.after(2.5)
    resumed.restore()
    assert model.weight.item() == best
    with pytest.raises(mg.ConversionError, match="the state lacks best_at, looks, model, of an EarlyStopping"):
        resumed.load_state_dict({"best": 1.0})


def test_a_history_is_a_table():
    history = History([{"loss": 1.23456, "a_long_name": 2}, {"loss": 1e-7, "val": float("nan")}])
    assert repr(history).splitlines() == [
        "epoch   loss  a_long_name  val",
        "    1  1.235            2",
        "    2  1e-07               nan",
    ]
    assert history["val"] and history[0]["a_long_name"] == 2 and repr(History()) == "epoch"


# Metrics ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("top", [1, 2])
@pytest.mark.parametrize("mode", ["eager", "graph", "jit"])
def test_accuracy(top, mode, numpy_kernels):
    logits = rng.integers(0, 3, size=(40, 5)).astype(np.float32)  # among ties the first counts
    logits[3] = np.nan
    targets = rng.integers(0, 5, size=40)
    order = np.argsort(-np.nan_to_num(logits, nan=-9), axis=-1, kind="stable")[:, :top]
    right = (order == targets[:, None]).any(-1) & ~np.isnan(logits[:, 0])
    accuracy, left_out = Accuracy(top), Accuracy(top, ignore_index=2)

    def add(x, y):
        for metric in (accuracy, left_out):
            metric.add(x.reshape(2, -1, 5), y.reshape(2, -1))

    with mg.graph() if mode == "graph" else mg.enable_grad():
        for half in (slice(20), slice(20, None)):
            x, y = mg.asarray(logits[half], requires_grad=True), mg.asarray(targets[half])
            (mg.jit(add) if mode == "jit" else add)(x, y)
    assert accuracy.value == right.mean() and left_out.value == right[targets != 2].mean()
    accuracy.reset()
    accuracy.add(mg.asarray([[1.0, 0.0]]), mg.asarray([0]))
    assert accuracy.value == 1.0


def test_means_and_perplexity_and_other_devices():
    mean, perplexity = Mean(), Perplexity()
    for value, count in ((1.0, 1), (mg.asarray(4.0, requires_grad=True), 3), (mg.ones(1, device="cpu:1"), 4)):
        mean.add(value, count)
    assert mean.value == 17 / 8 and repr(mean) == "Mean(2.125)"
    perplexity.add(mg.asarray(np.log(10.0)))
    perplexity.add(mg.asarray(np.log(1000.0)))
    assert perplexity.value == pytest.approx(100.0) and repr(Perplexity()) == "Perplexity(nothing yet)"
    perplexity.add(1e6)
    assert perplexity.value == float("inf")
    many = Mean()
    for _ in range(3):
        many.add(mg.asarray(0.1), 10**9)  # float32 would lose small terms in such a large sum
    assert many.value == pytest.approx(np.float32(0.1), rel=1e-6)


# Bars ---------------------------------------------------------------------------------------------------------------


def test_a_log_gets_a_line(capsys):
    mean = Mean()
    for x in (bar := progress([1.0, 3.0], "epoch 1")):
        mean.add(x)
        bar.show(loss=mean, rate=mg.asarray(0.5), note="fine", steps=12345)
    text = capsys.readouterr().err
    assert text.startswith("epoch 1  2/2 in 0.") and text.endswith(" s  loss 2, rate 0.5, note fine, steps 12345\n")
    for _ in progress(iter("abc"), quiet=True):
        pass
    for _ in progress(iter("abc")):
        break
    assert capsys.readouterr().err.startswith("0 in 0.")


def test_a_terminal_gets_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    bar = progress([1.0, 2.0], "epoch 1")
    assert len(bar) == 2
    for x in bar:
        bar.show(loss=mg.asarray(x))
    drawn = capsys.readouterr().err
    assert "epoch 1" in drawn and "2/2" in drawn and "loss 2" in drawn


def test_missing_tqdm_is_an_error_that_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="python -m pip install tqdm"):
        list(progress([1]))
    assert list(progress([1], quiet=True)) == [1]


# Nans ---------------------------------------------------------------------------------------------------------------


def diverging(mode):
    """A step that takes the square root of a value that becomes negative."""
    w = mg.asarray([2.0], requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=1.0, momentum=0.5)

    def step(x):
        optimizer.zero_grad()
        noise = mg.random.uniform((1,)) * 1e-3
        loss = mg.sqrt(w * x).sum() + noise.sum()
        loss.backward()
        optimizer.step()
        return loss

    return optimizer, mg.jit(step) if mode == "jit" else step


@pytest.mark.parametrize(("every", "found"), [(2, 2), (50, 4)])
@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_a_nan_is_named(mode, every, found, numpy_kernels):
    optimizer, step = diverging(mode)
    batches = [mg.asarray([x]) for x in (1.0, 4.0, 1.0, 4.0, 1.0, 4.0)]
    with pytest.raises(mg.NanError, match=r"sqrt(, made at .*test_loop.py.*)? made a nan from inputs") as caught:
        guarded = NanGuard(step, [optimizer], every=every)
        for batch in batches:
            guarded(batch)
    assert "test_loop.py" in str(caught.value)
    assert caught.value.__notes__ == [f"a nan was the loss; found by making step {found} of the last {found} again"]


def test_an_infinite_loss_is_named_too():
    w = mg.asarray([1.0], requires_grad=True)
    with pytest.raises(mg.NanError, match="exp made an infinity"):
        fit(lambda x: mg.exp(w * x).sum(), [1.0, 1000.0], watch=[w], quiet=True)


def test_nan_guard_restores_accumulated_gradients():
    w = mg.asarray([1.0], requires_grad=True)
    optimizer, seen = mg.optim.SGD([w], lr=0.0), []

    def step(x):
        (w * x).sum().backward()
        seen.append(w.grad.item())
        return mg.log(4.5 - w.grad).sum() * 1.0

    guarded = NanGuard(step, [optimizer], every=2)
    with pytest.raises(mg.NanError, match="log made a nan"):
        for _ in range(9):
            guarded(mg.asarray([1.0]))
    assert seen == [1.0, 2.0, 3.0, 4.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("step", "watch", "message"),
    [
        (lambda x: x.sum() * float("nan"), [], r"the loss is nan\n  Hint: watch=\[model, optimizer\]"),
        (lambda x: x.sum() * STATE.pop(), [mg.ones(1)], "was finite when the last 1 step ran again"),
        (lambda x: x.sum(), [mg.ones(1)], r"the loss is nan: array 0 of the batch, of shape \(2,\), holds a nan"),
    ],
)
def test_nans_that_no_operation_made(step, watch, message):
    STATE[:] = [1.0, float("nan")]
    batch = mg.asarray([1.0, float("nan")] if "array" in message else [1.0, 2.0])
    with pytest.raises(mg.NanError, match=message):
        NanGuard(step, watch)(batch)
    if "array" in message:
        with pytest.raises(mg.NanError, match=message):
            NanGuard(lambda x: mg.asarray(x).sum(), watch)(batch.numpy())


STATE = []


# Errors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit(lambda x: mg.ones(3), [1], quiet=True), r"returns its loss.*: loss is a tensor of shape \(3,\)"),
        (lambda: fit(lambda x: None, [1], quiet=True), "returns its loss, or a dict .*: loss is None"),
        (lambda: fit(lambda x: {"a": "b"}, [1], quiet=True), "a is a str"),
        (lambda: fit(lambda x: x, [], quiet=True), "there are no batches\n  Hint: a generator is empty after one"),
        (lambda: fit(lambda x: x, iter([1]), epochs=2, quiet=True), "there are no batches"),
        (lambda: fit(lambda x: x, [1], stop=EarlyStopping(), quiet=True),
         "no number named 'val_loss'\n  Expected: loss"),
        (lambda: fit(lambda x: x, [1], watch=["model"], quiet=True), "watch: a str holds no tensors"),
        (lambda: EarlyStopping(mode="least"), "mode is min or max, not 'least'"),
        (lambda: Mean().value, r"Mean: there is no value before anything is added"),
        (lambda: Mean().add(mg.ones(2)), r"add takes one number, not a tensor of shape \(2,\)"),
        (lambda: Accuracy().add(mg.ones((2, 3)), mg.asarray([1])),
         r"a target for each row of logits\n  Expected: targets \(2,\), for logits \(2, 3\)\n  Got: targets \(1,\)"),
        (lambda: Accuracy().add(mg.ones((1, 3)), mg.asarray([3])), "index 3 is out of range, with 3 classes"),
        (lambda: Metric().add(1), "Metric has no add method"),
        (lambda: len(progress(iter("abc"))), "has no length"),
    ],
)
def test_wrong_arguments_are_refused_with_a_clear_message(call, message):
    with pytest.raises((mg.MinigradError, NotImplementedError, TypeError), match=message):
        call()
