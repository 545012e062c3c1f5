"""Flipbooks of measurements: the tape, training runs."""

import base64
import gc
import math
import re
import warnings
import weakref
import zlib
from html import unescape
from itertools import groupby, pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minigrad as mg
from minigrad.autodiff.checkpointing import Segment
from minigrad.compile.look.held import Held
from minigrad.core.node import Leaf, Node, topological_order
from minigrad.core.programs import Closed
from minigrad.viz import trainings
from minigrad.viz.curves import columns_of
from minigrad.viz.dashboard import OFTEN
from minigrad.viz.kept import play, read_tape, segments_of, tape_of
from minigrad.viz.logs import PICTURES, Seen, Weights
from minigrad.viz.numbers import norm_of, short
from minigrad.viz.runs import KEY, WIDE, weights_drawn
from minigrad.viz.svg import text_width

# tape -----------------------------------------------------------------------------------------------------------------


def owner(array):
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array


def kept_by(result, others):
    """The bytes of the arrays that the nodes keep, each counted once, without the arrays of `others`."""
    found = {}
    for node in topological_order([result.node]):
        if isinstance(node.saved, Segment):
            found |= {id(owner(v)): owner(v).nbytes for v in node.saved.incoming.values()}
        elif isinstance(node.saved, tuple):
            made = [v for i, v in zip((*node.inputs, node), node.saved) if isinstance(i, Node)]  # not numbers
            found |= {id(owner(v)): owner(v).nbytes for v in made if v is not None}
    return sum(size for key, size in found.items() if key not in {id(owner(t.data)) for t in others})


def layers(count, size=8):
    made = []
    for i in range(count):
        w = mg.asarray(np.full((size, size), 0.1 * (i + 1), np.float32), requires_grad=True)

        def layer(x, w=w):
            return mg.tanh(x @ w) * 2

        made.append((layer, w))
    return made


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_bytes_match_what_checkpoints_keep(parts):
    """Real checkpoints of all parts but the last keep the bytes that the view shows."""
    made, x = layers(6), mg.ones((4, 8))
    weights = [w for _, w in made]

    def run(upto, start=0):
        def part(x):
            for i in range(start, upto):
                with mg.scope(f"layer{i}"):
                    x = made[i][0](x)
            return x

        return part

    tape = tape_of(lambda: run(6)(x))
    assert [unit.name for unit in tape.units] == [f"layer{i}" for i in range(6)]
    segments = segments_of(tape, parts)
    y = x
    for units in segments:
        y = mg.checkpoint(run(units[-1] + 1, units[0]))(y)
    y = run(6, segments[-1][-1] + 1)(y)
    assert play(tape, segments)[6].bytes == kept_by(y, [x, *weights])
    assert play(tape, [])[6].bytes == kept_by(run(6)(x), [x, *weights])


def test_tape_is_empty_at_first_and_has_what_each_part_of_the_backward_pass_reads():
    made, x = layers(4), mg.ones((4, 8), requires_grad=True)

    def f(x):
        for layer, _ in made:
            x = layer(x)
        return x.sum()

    tape = tape_of(lambda: f(x))
    for count in range(4):
        history = play(tape, segments_of(tape, count))
        assert not history[0].kept
        for moment in history[len(tape.units) + 1 :]:
            assert moment.kept >= {made for node in tape.units[moment.unit].nodes for made in tape.needs[node]}
        assert bool(history[-1].again) == bool(count)


def _loss(drop, x):
    with mg.record():
        return mg.tanh(drop(mg.tanh(x))).sum()


def test_dropout_masks_are_counted():
    drop, x = mg.nn.Dropout(0.5), mg.ones((16, 16), requires_grad=True)
    book = mg.viz.memory(_loss, drop, x)
    tape = read_tape(topological_order([_loss(drop, x).node]))
    made_by = {made.name for needs in tape.needs.values() for made in needs}
    assert "tanh" in made_by and len(made_by) > 1 and " kept; " in book.text()


@pytest.mark.slow
def test_tangled_graphs_have_a_tape():
    x = mg.ones(3, requires_grad=True)

    def f():
        y = x
        for _ in range(200):
            y = mg.tanh(y) + x
        return y.sum()

    book = mg.viz.memory(f)
    assert "0 checkpoints: at most 2.4 kB kept;" in book.text()
    settings = book.knobs[0].settings
    assert settings[:3] == ("eager", "0 checkpoints", "1 checkpoint") and settings[-1] == "fused" and len(settings) > 9


@pytest.mark.parametrize(("count", "helping"), [(1, 0), (8, 1), (30, 2)])
def test_only_checkpoints_that_lower_the_peak_are_shown(count, helping):
    net = mg.nn.Sequential(*[mg.nn.Linear(8, 8) if i % 2 else mg.nn.Tanh() for i in range(count)])
    book = mg.viz.memory(lambda x: net(x).sum(), mg.ones((4, 8), requires_grad=True))
    checkpoints = [f"{n} checkpoint" + "s" * (n > 1) for n in range(1, helping + 1)]
    assert book.knobs[0].settings == ("eager", "0 checkpoints", *checkpoints, "fused")
    assert ("checkpoints would not lower this" in book.text()) == (not helping)


def test_a_function_without_a_gradient_has_no_tape():
    book = mg.viz.memory(lambda x: x * 2, mg.ones(2))
    assert book.knobs[0].settings == ("eager", "fused") and "kept" not in book.text()


def test_copies_of_inputs_for_a_gradient_are_counted():
    """A program computes the softmax and copies its input, which the user may overwrite."""
    x, held = mg.zeros((100, 100), requires_grad=True), Held()
    with mg.eager_programs(True):
        mg.softmax(x)
        with held.watch():
            y = mg.softmax(x)
    saved = {id(array) for array in y.node.saved if array is not None}
    if isinstance(y.node.op, Closed):  # else llvmlite is not installed
        assert len(saved) == 1 and saved.isdisjoint([id(x._data)])
        assert [(life.name, life.bytes) for life in held.lives if "copy" in life.name] == [
            ("copy of an input of softmax (100, 100)", 40_000)]


def test_checkpoints_of_the_function_itself_are_counted():
    """The call itself holds what goes into the checkpoint; the model has the same function without one."""
    x = mg.ones(100, requires_grad=True)
    inside = mg.checkpoint(lambda h: mg.exp(mg.tanh(h)))

    def f():
        return mg.sum(inside(mg.sin(mg.sin(x))))

    words = mg.viz.memory(f).text()
    assert re.match(r"eager: .*; 804 B between forward and backward pass", words), "for both sines, and the result"
    assert "\n0 checkpoints: at most 1.2 kB kept;" in words, "sin(x), tanh and exp"
    (segment,) = {node.saved for node in topological_order([f().node]) if isinstance(node.saved, Segment)}
    assert sum(value.nbytes for value in segment.incoming.values()) == 400


def test_a_copy_of_data_that_a_rule_needs_is_kept():
    """A permuted batch is copied into one block, which the gradient of the weight reads."""
    x, w = mg.ones((8, 16, 4)), mg.asarray(np.ones((4, 2), np.float32), requires_grad=True)
    tape = tape_of(lambda: (x.swapaxes(0, 1).reshape(128, 4) @ w).sum())
    assert play(tape, [])[len(tape.units)].bytes == x.numpy().nbytes
    tape = tape_of(lambda: (x.reshape(128, 4) @ w).sum())
    assert play(tape, [])[len(tape.units)].bytes == 0, "a view of the data"


def test_function_is_unchanged_after_its_memory_is_shown():
    w = mg.ones(2, requires_grad=True)
    mg.viz.memory(lambda: (w * w).sum())
    assert isinstance(w.node, Leaf) and w.grad is None
    norm = mg.nn.BatchNorm1d(3)
    before = {name: tensor.detach().numpy().copy() for name, tensor in norm.named_tensors()}
    assert mg.viz.memory(lambda x: norm(x).sum(), mg.arange(6.0).reshape((2, 3))).knobs
    for name, tensor in norm.named_tensors():
        np.testing.assert_array_equal(tensor.detach().numpy(), before[name])


def test_what_cannot_be_traced_shows_eager_mode_alone():
    x = mg.ones(4, requires_grad=True)
    book = mg.viz.memory(lambda x: mg.tanh(x * 2).sum() * float(x.detach().numpy()[0]), x)
    assert book.knobs[0].settings == ("eager", "0 checkpoints"), "more would not help, and there is no program"
    assert "there is no fused program: " in repr(book) and len(book.pages[0]) == 1
    alone = mg.viz.memory(lambda x: mg.tanh(x) * float(x.detach().numpy()[0]), x.detach())
    assert alone.knobs == () and "eager at most 32 B in use" in repr(alone)
    with pytest.raises(mg.MinigradError, match="is not computed yet"):
        mg.viz.memory(lambda x: float(x.detach().numpy()[0]), x)


def test_all_ways_have_one_axis_and_a_model_is_dashed():
    made, x = layers(6), mg.ones((4, 8))

    def f(x):
        for i, (layer, _) in enumerate(made):
            with mg.scope(f"layer{i}"):
                x = layer(x)
        return x.sum()

    book = mg.viz.memory(f, x)
    axes = {tuple(re.findall(r'text-anchor="end"[^>]*>([\d.]+|k?B)<', page.drawing.to_svg("")))
            for page, *_ in book.pages[1:-1]}
    assert len(axes) == 1 and len(*axes) > 3
    says = [page.say for page, *_ in book.pages]
    assert [("a model" in say) for say in says] == [False, False, *[True] * (len(says) - 3), False]
    assert all(f"s{number}.most" in book.marks for number in range(len(book.pages)))
    title, rows = book.marks["s1.0"]
    assert title == "layer0, kept for the backward pass: at most 256 B"
    assert all(re.fullmatch(r"128 B, line \d+ of test_flipbooks_measured.py, until backward: layer[01]", about)
               for _, about in rows) and "tanh(x @ w)" in dict(rows)


@pytest.mark.parametrize("kind", ["loop", "lstm"])
def test_rounds_of_a_loop_are_parts_of_the_tape(kind):
    """Of a loop in the code, and of one inside a layer."""
    x, lstm = mg.asarray(np.arange(1.0, 61.0, dtype=np.float32).reshape(3, 4, 5), requires_grad=True), mg.nn.LSTM(5, 4)

    def loop(x):
        for _ in range(6):
            x = 0.5 * (x + 2.0 / x)
        return x.sum()

    tape = tape_of(lambda: loop(x) if kind == "loop" else lstm(x)[0].sum())
    name, count = ("for _ in range(6)", 6) if kind == "loop" else ("LSTM", 3)
    rounds = [unit for unit in tape.units if unit.around]
    assert [(*unit.around, unit.name) for unit in rounds] == [(name, f"round {i}") for i in range(count)]
    assert len({len(unit.nodes) for unit in rounds}) == 1
    book = mg.viz.memory(loop if kind == "loop" else lambda x: lstm(x)[0].sum(), x)
    for page in book.pages[:2]:  # in eager mode, and kept
        words = {*re.findall(r">(?:round )?([^<>]+)</text>", "".join(page[0].drawing.pieces))}
        assert name in words and {*map(str, range(count))} <= words  # the loop above its rounds


def test_a_gradient_is_in_the_round_of_its_operation():
    x, held = mg.ones(3, requires_grad=True), Held()
    with held.watch():
        y = mg.sin(x)
        for _ in range(2):
            y = mg.tanh(y)
        y.sum().backward()
    launches = [site.name for site in held.sites]
    of = [site.of for site in held.sites]
    assert launches[:3] == ["sin", "tanh", "tanh"] and of[:3] == [-1] * 3
    assert [n for n, _ in groupby(of[of.index(2) :])] == [2, 1, 0], "the last operation first"


def test_the_ring_at_the_peak_lists_what_is_there():
    made, x = layers(12), mg.ones((4, 8))

    def f(x):
        for layer, _ in made:
            x = layer(x)
        return x.sum()

    book = mg.viz.memory(f, x)
    title, rows = book.marks["s1.most"]
    sizes = [float(re.match(r"[\d.]+", words)[0]) * (1000 if re.match(r"[\d.]+ kB", words) else 1) for _, words in rows]
    assert re.fullmatch(r"at most [\d.]+ kB kept", title) and len(rows) == len({name for name, _ in rows})
    assert sum(sizes) == pytest.approx(1000 * float(title.split()[2]), rel=0.01)
    assert sizes == sorted(sizes, reverse=True)


def test_the_tape_of_a_transformer_is_by_block():
    class Deep(mg.nn.Module):
        def __init__(self):
            self.blocks = mg.nn.ModuleList([mg.nn.Sequential(mg.nn.Linear(4, 4), mg.nn.Tanh()) for _ in range(3)])
            self.head = mg.nn.Linear(4, 2)

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return self.head(x)

    net = Deep()
    book = mg.viz.memory(lambda x: mg.tanh(net(x)).sum(), mg.ones((2, 4)))
    names = {name for key, (name, _) in book.marks.items() if key.startswith("s1.axis0.")}
    assert names == {"blocks[0]", "blocks[1]", "blocks[2]", "head", "tanh(net(x))", "tanh(net(x)).sum()"}


# training -------------------------------------------------------------------------------------------------------------


def a_net():
    mg.random.seed(3)
    return mg.nn.Sequential(mg.nn.Linear(1, 6), mg.nn.Tanh(), mg.nn.Linear(6, 1))


def data():
    x = mg.linspace(-1, 1, 12).reshape((12, 1))
    return x, x * x


def by_hand(net, steps):
    optimizer, losses = mg.optim.SGD(net.parameters(), lr=0.2), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = mg.nn.MSELoss()(net(data()[0]), data()[1])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training_view_trains_the_model():
    net, other = a_net(), a_net()
    book = mg.viz.training(net, mg.optim.SGD(net.parameters(), lr=0.2), mg.nn.MSELoss(), [data()] * 4)
    losses = by_hand(other, 4)
    said = re.findall(r"the loss is ([^ ]+)\.$", book.text(), re.MULTILINE)
    assert [*map(float, said)] == pytest.approx(losses, rel=5e-3)
    for one, two in zip(net.parameters(), other.parameters()):
        np.testing.assert_allclose(one.data, two.data)
    says = [page.say.split(":")[0] for page in book.pages[0]]
    assert len(says) == 16 and net.training
    assert says[4:8] == [f"Step 2, {phase}" for phase in ("batch", "forward", "backward", "update")]


def test_gradients_appear_after_the_backward_pass():
    net = a_net()
    book = mg.viz.training(net, mg.optim.SGD(net.parameters(), lr=0.2), mg.nn.MSELoss(), [data()])
    texts = ["".join(page.drawing.pieces) for page in book.pages[0]]
    assert ["no gradient yet" in text for text in texts] == [True, True, False, False]
    assert ["∂0.weight" in text for text in texts] == [False, False, True, True] and book.start == 3


def test_a_training_on_classes_shows_what_is_read_wrongly():
    net = mg.nn.Linear(64, 2)
    with mg.no_grad():
        net.weight[...] = 0.0
        net.bias[...] = mg.asarray([1.0, 0.0])
    pictures, labels = mg.ones((2, 8, 8)), mg.asarray([0, 1])
    optimizer = mg.optim.SGD(net.parameters(), lr=0.1)
    model = mg.nn.Sequential(mg.nn.Flatten(), net)
    book = mg.viz.training(model, optimizer, mg.nn.CrossEntropyLoss(), [(pictures, labels)])
    batch, forward, *_ = book.pages[0]
    assert "1 of 2 right" in forward.say and "right" not in batch.say
    assert "1 as 0" in "".join(forward.drawing.pieces) and "1 as 0" not in "".join(batch.drawing.pieces)


def test_a_training_that_overflows_has_its_marks_inside_the_charts():
    net = mg.nn.Linear(1, 1)
    x = mg.linspace(-1, 1, 12).reshape((12, 1))
    with np.errstate(all="ignore"):
        book = mg.viz.training(net, mg.optim.SGD(net.parameters(), lr=1e15), mg.nn.MSELoss(), [(x, x)] * 6)
    words = drawn_words(book)
    assert "loss; ▼ not finite, logarithmic" in [text for *_, text in words] and "mean of 0" not in str(words)
    marks = re.findall(r'd="(M[^"]+)" pointer-events="none" fill="#b3261e"', "".join(book.pages[0][-1].drawing.pieces))
    assert all(float(x) < WIDE for mark in marks for x in re.findall(r"M(\S+) ", mark)) and marks


def test_unsuitable_trainings_are_refused():
    net = a_net()
    arguments = net, mg.optim.SGD(net.parameters(), lr=0.2), mg.nn.MSELoss()
    with pytest.raises(mg.MinigradError, match="no batch"):
        mg.viz.training(*arguments, [])
    with pytest.raises(mg.MinigradError, match="a batch is a pair of tensors"):
        mg.viz.training(*arguments, [data()[0]])
    with pytest.raises(mg.MinigradError, match=r"a model is trained[\s\S]*a function[\s\S]*training\({'name':"):
        mg.viz.training(lambda x: x, *arguments[1:], [data()])
    with pytest.raises(mg.MinigradError, match="trained with an optimizer and a loss"):
        mg.viz.training(net)
    with pytest.raises(mg.MinigradError, match="not a number that depends on the parameters"):
        mg.viz.training(*arguments[:2], lambda y, t: 3.0, [data()])


# the dashboard --------------------------------------------------------------------------------------------------------


def test_all_parameters_stand_in_a_table_beside_the_pictures_of_the_first():
    net = mg.nn.Sequential(*[mg.nn.Linear(2, 2) for _ in range(5)])
    book = a_training(net, mg.ones((3, 2)), mg.ones((3, 2)), mg.nn.MSELoss())
    _, (heading, (_, table)) = book.pages[0][-1].blocks
    norms = {name.replace("\u200b", ""): norm for name, norm, _ in table["rows"]}
    assert heading.startswith("all parameters") and norms.keys() == {name for name, _ in net.named_parameters()}
    assert norms["3.weight"] == short(float(np.linalg.norm(net[3].weight.detach().numpy())))
    assert "parameters after step 3, 6 of 10" in str(drawn_words(book)) and "4.bias" not in str(drawn_words(book))


def test_any_loop_can_log_to_a_dashboard():
    net, board = a_net(), mg.viz.Dashboard(show="nothing")
    optimizer = mg.optim.SGD(net.parameters(), lr=0.2)
    for step in range(1, 101):
        optimizer.zero_grad()
        loss = mg.nn.MSELoss()(net(data()[0]), data()[1])
        loss.backward()
        board.log(step, loss=loss, model=net)
        optimizer.step()
    assert len(board.numbers["loss"]) == 100 == len(board.numbers["norm of the gradient"])
    norm = math.sqrt(sum([(p.grad.numpy() ** 2).sum() for p in net.parameters()]))
    assert board.numbers["norm of the gradient"][step] == pytest.approx(norm, rel=1e-5)
    steps = sorted(board.weights)
    assert len(steps) == PICTURES and (steps[0], steps[-1]) == (1, 100)
    *apart, _ = [b - a for a, b in pairwise(steps)]
    assert max(apart) <= 2 * min(apart)  # spread over all steps
    book = board.book()
    assert book.pages[0][-1].say.startswith(
        f"After step 100: loss {board.numbers['loss'][100]:.3g}; norm of the gradient {short(norm)}; 2.bias ")
    assert "0.weight" in book.to_svg() and repr(board).startswith("<training: 100 steps, loss ")


@given(st.lists(st.floats(-100, 100, width=16), min_size=1, max_size=300), st.integers(1, 40))
def test_every_step_of_a_curve_is_in_a_column(values, most):
    """The columns have the extremes of all steps, and the mean of each is that of its own steps."""
    columns = columns_of(np.array([*enumerate(values)], float), most)
    at, least, mean, largest = zip(*columns)
    assert len(columns) <= most and [*at] == sorted(at)
    assert min(least) == min(values) and max(largest) == max(values)
    assert all(low <= middle + 1e-9 and middle <= high + 1e-9 for low, middle, high in zip(least, mean, largest))
    assert len(columns) == min(most, len(values))
    sizes = [len(values) // most + (k < len(values) % most) for k in range(most)]
    rest = iter(values)
    np.testing.assert_allclose(mean, [np.mean([next(rest) for _ in range(size)]) for size in sizes if size], atol=1e-12)


@pytest.mark.slow
def test_single_steps_stay_visible_among_thousands():
    """A jump of a single step makes the picture another one; so does a value that is not finite."""
    pictures = []
    for jump in (1.0, 9.0, math.nan):
        board = mg.viz.Dashboard(show="nothing")
        for step in range(1, 8001):
            board.log(step, loss=jump if step == 4321 else 1.0 + step % 2)
        live, page = board.to_svg(), board.book().pages[0][-1].drawing  # the same picture, with places to point at
        assert all(piece in live for piece in page.pieces if "data-stops" not in piece)
        pictures.append(board.to_svg())
    plain, high, _ = (set(re.findall(r'<path d="([^"]+)" fill="#[0-9a-f]+" stroke="none"', p)) for p in pictures)
    assert len(plain) == 1 and plain != high and "mean of 14 steps, shade" in pictures[0]
    assert 'fill="#b3261e"' in pictures[2] and 'fill="#b3261e"' not in pictures[0] + pictures[1]


def test_each_step_without_a_finite_value_has_a_mark():
    svg = mg.viz.training([1.0] * 3_000 + [math.nan] * 3_000).to_svg()
    marks = [float(x) for x in re.findall(r"M([\d.]+) ", re.search(r'd="([^"]+)"[^>]+fill="#b3261e"', svg)[1])]
    assert max(marks) > 860 and max(np.diff(marks)) < 2  # up to the end of the chart, and without a gap


def test_a_run_that_diverges_leaves_the_others_to_be_seen():
    sane, wild = [1 / step for step in range(1, 21)], [10.0**step for step in range(20)]
    first, linear, _ = (pages[-1].drawing for pages in mg.viz.training({"sane": sane, "wild": wild}).pages)
    heights = [np.ptp([float(y) for y in re.findall(r"[ML]\S+ ([\d.]+)", path)])
               for path in [re.findall('mg-curve".*?<path d="([^"]+)', each.to_svg(""))[0] for each in (first, linear)]]
    assert ">loss, logarithmic<" in first.to_svg("") and heights[0] > 15 > 1 > heights[1]
    book = mg.viz.training({"nan": [1.0, math.nan, math.nan]})
    assert "loss; ▼ not finite" in book.to_svg() and book.pages[0][1].say == "After step 2: loss nan."


def test_a_run_that_converges_leaves_the_others_to_be_seen():
    """The axis that fits is not logarithmic for the sake of one curve; one that was asked for is."""
    slow, quick = [1.0, 0.9, 0.8], [1.0, 0.5, 1e-18]
    book = mg.viz.training({"slow": slow, "slower": slow[::-1], "quick": quick})
    first, log = (re.findall(r">([^<>]+)</text>", "".join(book.pages[i][0].drawing.pieces)) for i in (0, 2))
    assert "0.2" in first and "1e−10" not in first and "1e−10" in log
    assert "0.001" in mg.viz.training({"one": [10.0, 1e-3], "two": [9.0, 1.0]}).to_svg()
    runs = {str(rate): [math.exp(-rate * i) + 0.01 for i in range(120)] for rate in (0.01, 0.03, 0.1)}
    assert ">loss, logarithmic<" in mg.viz.training(runs).to_svg()  # half of the last one is at the bottom


@pytest.mark.parametrize("fits, values", [
    ("linear", [0.1 * (1 - i / 1000) for i in range(1000)]),  # a linear decay of the learning rate
    ("linear", [1e-5 + 1e-2 * (1 + math.cos(math.pi * i / 60)) for i in range(60)]),
    ("linear", [1e-4 * (i + 1) for i in range(100)]),  # a warm-up
    ("logarithmic", [2.0 * 0.9**i for i in range(60)]),
    ("logarithmic", [1 / (i + 1) for i in range(60)]),
    ("linear", [2.3 * 0.97**i for i in range(60)]),
    ("linear", [10.0 ** -(2**i) for i in range(5)] + [0.0] * 3),  # Newton's method, until it is exact
    ("linear", [10.0 ** -(2**i) for i in range(3)] + [0.0] * 50),
    ("linear", [10.0 ** -(2**i) for i in range(5)] + [-0.1]),
])
def test_an_axis_is_logarithmic_only_where_a_linear_one_hides_a_curve(fits, values):
    first, linear, logarithmic = [pages[-1].drawing.pieces[0] for pages in mg.viz.training(values).pages]
    assert linear != logarithmic and first == {"linear": linear, "logarithmic": logarithmic}[fits]


def test_of_curves_on_each_other_each_is_seen():
    """Each is thicker than the one below it, and its gaps are longer: like beads on a string."""
    svg = mg.viz.training({"one": [1.0, 0.5], "other": [1.0, 0.5], "again": [1.0, 0.5]}).to_svg()
    pattern = r'mg-curve"[^>]*><path d="([^"]+)"[^>]+stroke-width="([^"]+)"( stroke-dasharray="(\d+) (\d+)")?'
    found = re.findall(pattern, svg)
    assert len(found) == 3 and len({path for path, *_ in found}) == 1
    thick, gaps = [float(each[1]) for each in found], [int(each[4] or 0) for each in found]
    assert thick == sorted({*thick}) and gaps == sorted({*gaps})
    assert len({int(on) + int(off) for *_, on, off in found[1:]}) == 1  # so that their dashes begin together
    noise = {name: [1.0, 2.0, 1.0, 2.5, 1.0, 3.0] for name in ("one", "other")}
    assert len({thick for _, thick, *_ in re.findall(pattern, mg.viz.training(noise).to_svg())}) == 1


def test_axes_have_a_word():
    assert mg.viz.training([1.0, 0.5]).to_svg().count(">step</text>") == 1


def svg_texts(svg):
    """Each line of text of a picture: where it ends, its anchor, its words."""
    found = re.findall(r'<text x="([^"]+)" y="[^"]+" font-size="([^"]+)" text-anchor="(\w+)"[^>]*>([^<]*)<', svg)
    return [(float(x) + text_width(words, float(size)) * (anchor == "start"), anchor, words)
            for x, size, anchor, words in found]


@pytest.mark.parametrize("values", [[1.0], [1.0, 0.5], [1.0, 0.5, 0.2], [1.0 / i for i in range(1, 8)], [1.0] * 21])
def test_steps_at_an_axis_are_whole_numbers(values):
    ticks = [words for _, anchor, words in svg_texts(mg.viz.training(values).to_svg()) if anchor == "middle"]
    assert ticks and all(words.isdecimal() and 1 <= int(words) <= len(values) for words in ticks)
    steps = [words for _, anchor, words in svg_texts(a_training(mg.nn.Linear(3, 1), mg.ones((2, 3)), mg.ones((2, 1)),
                                                               mg.nn.MSELoss()).to_svg()) if anchor == "middle"]
    assert steps == ["1", "2", "3"] * 3  # of the loss, of the norm of the gradient, and of the bias


def test_the_axis_of_a_single_value_is_near_it():
    levels = [float(words) for _, anchor, words in svg_texts(mg.viz.training([0.01]).to_svg())
              if anchor == "end" and words != "step"]
    assert len(levels) > 2 and 0.0 < min(levels) <= 0.01 <= max(levels) < 0.02


def test_a_long_name_of_a_run_ends_in_dots_inside_of_the_picture():
    name = "learning rate 0.1, with a warm-up and a cosine, and again with other numbers" * 2
    svg = mg.viz.training({name: [1.0, 0.5], "plain": [1.0, 0.7]}).to_svg()
    left, _, wide, _ = map(float, re.search('viewBox="([^"]+)"', svg)[1].split())
    [(end, _, shown)] = [text for text in svg_texts(svg) if text[2].startswith("learning")]
    assert shown.endswith("…") and end <= left + wide


def test_charts_below_one_another_have_one_axis():
    """So that what happened at a step is below the loss of this step, although only one of the charts has a legend."""
    board, net = mg.viz.Dashboard(show="nothing"), a_net()
    for step in range(1, 4):
        mg.nn.MSELoss()(net(data()[0]), data()[1]).backward()
        board.log(step, loss=1 / step, model=net)
    widths = re.findall(r'<rect x="([^"]+)" y="[^"]+" width="([^"]+)"[^>]+fill="transparent"', board.to_svg())
    assert len(widths) == 3 and len(set(widths)) == 1  # the bias of the last layer is a single number


def test_numbers_without_a_chart_are_mentioned():
    row = {f"number {i}": 1.0 for i in range(7)}
    book = mg.viz.training([row, row])
    assert "number 4" in book.to_svg() and "number 5" not in book.to_svg()
    [(heading, _, table)] = book.data()["pages"][0][0][2]
    assert heading == "all numbers, over all steps" and ["number 6", "1", "1", "1", "1"] in table["rows"]


def test_the_panel_of_runs_has_the_ends_of_each_curve():
    book = mg.viz.training({"a": [{"loss": 3.0}, {"loss": 1.0}, {"loss": 2.0}], "b": [4.0, math.nan]})
    [(_, (_, table))] = book.pages[0][0].blocks
    assert table["head"] == ("", "first", "last", "least", "most")
    assert table["rows"] == [["loss, a", "3", "2", "1", "3"], ["loss, b", "4", "nan", "4", "4"]]


def test_the_words_beside_the_slider_say_where_one_is():
    x = mg.ones((2, 3))
    training = a_training(mg.nn.Linear(3, 1), x, mg.ones((2, 1)), mg.nn.MSELoss())
    assert [page.count for page in training.pages[0]][4:] == [
        f"step {i}, {phase}" for i in (2, 3) for phase in ("batch", "forward", "backward", "update")]
    board = mg.viz.Dashboard(show="nothing")
    for step in (500, 1000):
        board.log(step, loss=1.0)
    assert [page.count for page in board.book().pages[0]] == ["step 500 / 1,000", "step 1,000 / 1,000"]
    assert board.book().pages[0][1].say == "After step 1,000: loss 1."


def test_names_of_curves_stand_once():
    runs = {name: [{"loss": 1.0, "accuracy": 0.5}] * 2 for name in ("one", "two")}
    assert mg.viz.training(runs).to_svg().count(">one</text>") == 1


def a_training(net, x, y, loss=None):
    optimizer = mg.optim.SGD(net.parameters(), lr=0.1)
    return mg.viz.training(net, optimizer, loss or mg.nn.CrossEntropyLoss(), [(x, y)] * 3)


def drawn_words(book):
    """Each line of text of the last page: its place, its size and its words."""
    pattern = r'<text x="([^"]+)" y="([^"]+)" font-size="([^"]+)"[^>]*>([^<]*)<'
    return [(float(x), float(y), float(size), unescape(words))
            for x, y, size, words in re.findall(pattern, "".join(book.pages[0][-1].drawing.pieces))]


@pytest.mark.parametrize("shape", [(6, 8, 8), (6, 64), (6, 4), (6, 5, 2)])
def test_words_of_a_training_do_not_overlap(shape):
    net = mg.nn.Sequential(mg.nn.Flatten(), mg.nn.Linear(math.prod(shape[1:]), 3))
    book = a_training(net, mg.ones(shape), mg.asarray([0, 1, 2, 0, 1, 2]))
    words = drawn_words(book)
    assert "batch; model(x) before the update" in [text for *_, text in words] and len(words) > 10
    for (x, y, size, text), (left, other, *_) in permutations(words, 2):
        assert abs(y - other) > 8 or not x < left < x + text_width(text, size)


def test_what_the_line_is_does_not_overlap_the_title_of_its_chart():
    board, net = mg.viz.Dashboard(show="nothing"), mg.nn.Linear(2, 2)
    for step in range(1, 1001):
        board.log(step, loss=math.nan if step == 500 else 10.0 ** (step % 7), model=net if step == 1 else None)
    (left, title), (right, said) = [(x, text) for x, _, _, text in drawn_words(board.book())
                                    if text.startswith(("loss;", "line: "))]
    assert left + text_width(title, 12, bold=True) < right - text_width(said, 10) and said.startswith("line: mean of 3")


def test_a_label_that_the_model_takes_for_another_is_explained():
    net = mg.nn.Sequential(mg.nn.Flatten(), mg.nn.Linear(64, 3))
    texts = [text for *_, text in drawn_words(a_training(net, mg.ones((3, 8, 8)), mg.asarray([0, 1, 2])))]
    assert any(re.fullmatch(r"\d as \d", text) for text in texts)
    assert "x: 3 × 8 × 8; below: y; 2 as 7: the model takes 2 for 7" in texts


def test_labels_below_pictures_are_explained_also_where_all_are_right():
    net = mg.nn.Sequential(mg.nn.Flatten(), mg.nn.Linear(64, 3))
    with mg.no_grad():
        net[1].weight[...], net[1].bias[...] = 0.0, mg.asarray([9.0, 0.0, 0.0])
    texts = [text for *_, text in drawn_words(a_training(net, mg.ones((3, 8, 8)), mg.asarray([0, 0, 0])))]
    assert "x: 3 × 8 × 8; below: y" in texts and texts.count("0") >= 3


def test_a_target_for_all_pictures_together_is_no_label():
    net = mg.nn.Sequential(mg.nn.Flatten(), mg.nn.Linear(64, 1))
    book = a_training(net, mg.ones((3, 8, 8)), mg.asarray([1.0]), lambda made, y: ((made - y) ** 2).mean())
    assert "x: 3 × 8 × 8" in [text for *_, text in drawn_words(book)]


def test_what_the_model_made_is_said_to_be_from_before_the_update():
    """The parameters beside it are those after the update, and so are not what made it."""
    x = mg.asarray([[0.0], [1.0], [2.0]])
    for net, y in ((mg.nn.Linear(1, 1), 2 * x + 1), (mg.nn.Linear(1, 2), mg.ones((3, 2)))):
        book = a_training(net, x, y, mg.nn.MSELoss())
        headings = [re.search(">(batch[^<]*)<", "".join(page.drawing.pieces))[1] for page in book.pages[0]]
        assert headings == (["batch"] + ["batch; model(x) before the update"] * 3) * 3
        assert book.pages[0][-1].blocks[0][0] == "all numbers, over all steps, before each update"


def test_labels_that_name_no_class_are_neither_right_nor_wrong():
    """The label −1 often marks a place that the loss leaves out."""
    net = mg.nn.Embedding(3, 3)
    with mg.no_grad():
        net.weight[...] = mg.asarray(np.eye(3, dtype=np.float32))
    x, y = mg.asarray([[0, 1, 2, 0]]), mg.asarray([[0, 1, -1, -1]])
    book = a_training(net, x, y, lambda scores, y: mg.cross_entropy(scores[:, :2].reshape(-1, 3), y[:, :2].reshape(-1)))
    assert "2 of 2 right" in book.pages[0][1].say


def test_few_numbers_of_a_batch_are_text_and_none_is_cut():
    net = mg.nn.Sequential(mg.nn.Flatten(), mg.nn.Linear(10, 1))
    x = mg.asarray(np.linspace(-1, 1, 30, dtype=np.float32).reshape(3, 5, 2))
    y = mg.asarray([[-1.28], [-0.713], [0.621]])
    forward = a_training(net, x, y, mg.nn.MSELoss()).pages[0][1].drawing
    drawn = "".join(forward.pieces)
    assert ">−1.28, −0.713, 0.621<" in drawn and "…<" not in drawn
    rows = re.findall(r">([^<>]+)</text>", drawn.partition(">model(x)<")[2])
    assert rows[0] == "3 × 1" and [len(row.split(", ")) for row in rows[1:]] == [3]


def test_weights_change_in_the_update_alone_and_gradients_in_the_backward_pass(monkeypatch):
    drawn = []
    monkeypatch.setattr(trainings, "weights_drawn", lambda seen, when: drawn.append(seen) or weights_drawn(seen, when))
    a_training(mg.nn.Linear(3, 2), mg.ones((3, 1, 3, 3)), mg.asarray([0, 1, 0]), lambda y, _: (y * y).mean())
    assert len(drawn) == 3 * 4
    for at, (before, after) in enumerate(pairwise(drawn), 1):
        phase = at % 4  # batch, forward, backward, update
        assert (str(before.values) != str(after.values)) == (phase == 3)
        assert (str(before.gradients) != str(after.gradients)) == (phase in (0, 2))  # and they are cleared for a batch


def test_a_log_holds_what_is_drawn_and_no_second_model():
    net, board = mg.nn.Linear(64, 64), mg.viz.Dashboard(show="nothing")
    for step in (1, 2, 3):
        net.zero_grad()
        net(mg.ones((2, 64))).sum().backward()
        board.log(step, model=net)
        assert board.numbers["norm of the gradient"][step] == pytest.approx(norm_of([2.0] * (64 * 64 + 64)))
    for weights in board.weights.values():
        held = [*weights.values.values(), *weights.gradients.values()]
        assert [len(each.cells) for each in held] == [6 * 10 + 5, 10] * 2


def test_norms_of_parameters_are_numbers_of_their_own():
    net = mg.nn.Sequential(*[mg.nn.Linear(1, 1) for _ in range(4)])
    with mg.no_grad():
        net[0].bias[...] = -3.0
    board = mg.viz.Dashboard(show="nothing")
    board.log(1, model=net)
    [(_, (_, table))] = [block for block in board.book().pages[0][0].blocks if block[0].startswith("all parameters")]
    assert ["0.bias", "3", "none"] in table["rows"]  # the norm of −3


def test_parameters_that_are_single_numbers_have_curves():
    net, x = mg.nn.Linear(1, 1), mg.asarray([[1.0]])
    first = net.weight.item()
    book = a_training(net, x, 2 * x, mg.nn.MSELoss())
    assert {"loss", "norm of the gradient", "weight", "bias"} <= {text for *_, text in drawn_words(book)}
    board = mg.viz.Dashboard(show="nothing")
    board.log(1, bias=7.0, model=net)
    assert board.numbers["bias"] == {1: 7.0}  # what the user logs has precedence
    assert board.numbers["weight"] == {1: net.weight.item()} != {1: first}


def test_all_predictions_are_in_the_chart_of_the_batch():
    """Also those beyond the targets."""
    net, x = mg.nn.Linear(1, 1), mg.asarray([[0.0], [1.0], [2.0]])
    with mg.no_grad():
        net.weight[...], net.bias[...] = 3.0, -5.0
    for page in a_training(net, x, x, mg.nn.MSELoss()).pages[0]:
        if ", batch" in page.say:
            continue  # nothing is predicted yet
        drawn = "".join(page.drawing.pieces).partition("line: model(x)")[2]
        [line] = re.findall(r'<path d="(M[^"]+)" fill="none" stroke="#0072b2"', drawn)
        assert len(re.findall("[ML]", line)) == 3


def test_the_numbers_of_the_steps_of_a_training_are_true():
    net, other = a_net(), a_net()
    optimizer = mg.optim.Adam(net.parameters(), lr=0.1)

    def batches():
        for step in range(3):
            optimizer.lr = 0.1 / (1 + step)
            yield data()

    book = mg.viz.training(net, optimizer, mg.nn.MSELoss(), batches())
    parameters = [p.detach().numpy().astype(float) for p in other.parameters()]
    moments, rows = [[0 * p, 0 * p] for p in parameters], []
    for t in range(1, 4):
        other.zero_grad()
        with mg.no_grad():
            for tensor, p in zip(other.parameters(), parameters):
                tensor[...] = mg.asarray(p.astype(np.float32))
        loss = mg.nn.MSELoss()(other(data()[0]), data()[1])
        loss.backward()
        gradients, change = [p.grad.numpy().astype(float) for p in other.parameters()], 0.0
        for p, g, moment in zip(parameters, gradients, moments):
            moment[:] = 0.9 * moment[0] + 0.1 * g, 0.999 * moment[1] + 0.001 * g * g
            move = 0.1 / t * moment[0] / (1 - 0.9**t) / (np.sqrt(moment[1] / (1 - 0.999**t)) + 1e-8)
            p -= move
            change += (move**2).sum()
        norm = math.sqrt(sum((g**2).sum() for g in gradients))
        rows.append([loss.item(), norm, math.sqrt(change), 0.1 / t])
    says = [page.say for page in book.pages[0]]
    for (loss, norm, change, rate), (_, forward, backward, update) in zip(rows, zip(*[iter(says)] * 4)):
        [*numbers] = map(float, re.findall(r"(?:is|lr|by|was) (\d[\d.e-]*\d)", " ".join((forward, backward, update))))
        assert numbers == pytest.approx([loss, norm, rate, change, loss], rel=6e-3)
    [_, (_, table)] = book.pages[0][0].blocks[0]
    [name, first, last, *_] = table["rows"][0]
    assert name == "loss" and [float(first), float(last)] == pytest.approx([rows[0][0], rows[-1][0]], rel=6e-3)


def test_a_gradient_that_nobody_cleared_is_seen():
    net, elsewhere = mg.nn.Linear(2, 2), mg.asarray(1.0, requires_grad=True)
    book = mg.viz.training(net, mg.optim.SGD([elsewhere], lr=0.1), mg.nn.MSELoss(), [(mg.ones((3, 2)),) * 2] * 2)
    shown = ["no gradient yet" in "".join(page.drawing.pieces) for page in book.pages[0]]
    assert shown == [True, True] + [False] * 6
    assert "changes the parameters by 0 in all; the loss" in book.pages[0][-1].say


def test_a_parameter_without_a_gradient_says_so():
    class Spare(mg.nn.Module):
        def __init__(self):
            self.used, self.spare = mg.nn.Linear(2, 2), mg.asarray([[1.0, 2.0]], requires_grad=True)
            self.empty = mg.asarray(np.zeros((0, 3), np.float32), requires_grad=True)

        def forward(self, x):
            return self.used(x)

    words = [text for *_, text in drawn_words(a_training(Spare(), mg.ones((3, 2)), mg.ones((3, 2)), mg.nn.MSELoss()))]
    at = len(words) - words[::-1].index("spare")
    assert words[at : at + 2] == ["1 × 2, norm 2.24", "no gradient"] and "0 × 3, norm 0" in words


def test_a_single_score_is_no_class():
    net, labels = mg.nn.Linear(2, 1), mg.asarray([0, 1, 1])
    book = a_training(net, mg.ones((3, 2)), labels, lambda scores, y: ((scores[:, 0] - y) ** 2).mean())
    assert "right" not in book.pages[0][-1].say


def test_truth_values_are_no_classes():
    labels = mg.asarray(np.array([True, False]))
    book = a_training(mg.nn.Linear(2, 2), mg.ones((2, 2)), labels, lambda scores, y: (scores**2).mean())
    words = [text for *_, text in drawn_words(book)]
    assert "True, False" in words and "predicted" not in words and "right" not in book.pages[0][1].say


def test_scores_that_are_not_finite_are_of_no_class():
    book = a_training(mg.nn.Linear(2, 3), mg.asarray([[math.nan, 1.0]]), mg.asarray([0]))
    assert "loss is nan" in book.pages[0][1].say and "right" not in book.pages[0][1].say


def test_a_run_that_is_over_says_at_which_step_its_last_value_is():
    book = mg.viz.training({"short": [1.0, 0.5], "long": [1.0, 0.7, 0.6]})
    assert book.pages[0][-1].say == "After step 3: loss 0.5 (at step 2) in short, 0.6 in long."


def test_the_parameters_of_the_last_step_are_always_shown():
    """Also those of a few steps before it, which say whose they are."""
    board, net = mg.viz.Dashboard(show="nothing"), mg.nn.Linear(2, 2)
    for step in range(1, 201):
        net.weight.data[...] = step
        board.log(step, loss=1 / step, model=net)
        net.weight.data[...] = 0.0  # the update
    book = board.book()
    assert len(board.weights) == PICTURES and max(board.weights) == 200
    assert {"parameters at step 200", f"2 × 2, norm {400}"} <= {text for *_, text in drawn_words(book)}
    assert "parameters" not in book.pages[0][-1].say and "parameters at step 200" in board.to_svg()
    board.log(201, loss=0.1)
    assert "parameters at step 200" in board.to_svg()


def test_a_dashboard_of_many_numbers_has_a_short_title():
    board = mg.viz.Dashboard(show="nothing")
    board.log(1, **{f"number {i}": float(i) for i in range(40)})
    assert repr(board).endswith("number 4 4 → 4, …>")


def test_parameters_of_an_update_are_those_after_its_step():
    pages = a_training(mg.nn.Linear(1, 1), mg.ones((2, 1)), mg.zeros((2, 1)), mg.nn.MSELoss()).pages[0]
    drawn = ["".join(page.drawing.pieces) for page in pages]
    titles = [re.search(">(parameters [^<]+)<", each)[1] for each in drawn]
    assert titles == [f"parameters {when} step {i}" for i in (1, 2, 3) for when in ("before",) * 3 + ("after",)]
    numbers = [re.findall(r">weight<.*?>([^<∂]+)<", each)[-1] for each in drawn]
    assert numbers[3:7] == [numbers[3]] * 4 and numbers[2] != numbers[3]


def test_each_curve_has_its_dot_from_the_phase_on_that_makes_its_number():
    """The dot of the loss moved with that of the gradient, although the words beside it had the loss before."""
    pages = a_training(a_net(), *data(), mg.nn.MSELoss()).pages[0]
    dots = [[float(x) for x in re.findall(r'<circle cx="([^"]+)"[^>]+fill="#e69f00"', "".join(page.drawing.pieces))]
            for page in pages]
    first, second = dots[0][0], dots[4][-1]  # the places of two steps; the curves are the loss, the norm and the bias
    assert first < second and dots[:4] == [[first], [first] * 2, [first] * 3, [first] * 3]
    assert dots[4:8] == [[first, first, second], [second, first, second], [second] * 3, [second] * 3]


def test_labels_and_results_with_names_are_shown_each():
    """They were one thing, "scalar", with the text of a dictionary."""
    class Tasks(mg.nn.Module):
        def __init__(self):
            self.body = mg.nn.Linear(6, 4)

        def forward(self, x):
            h = self.body(x)
            return {"class": h[:, :3], "score": h[:, 3]}

    def loss(made, y):
        return mg.cross_entropy(made["class"], y["class"]) + ((made["score"] - y["score"]) ** 2).mean()

    y = {"class": mg.asarray([0, 2, 1, 0, 2]), "score": mg.ones(5), "ids": ["a", "b"]}
    book = a_training(Tasks(), mg.ones((5, 6)), y, loss)
    assert book.pages[0][0].say == "Step 1, batch: take a batch: x 5 × 6, y['class'] (5,), y['score'] (5,)."
    words = [text for *_, text in drawn_words(book)]
    names = ["x", "y['class']", "y['score']", "model(x)['class']", "model(x)['score']"]
    assert [word for word in words if word in names] == names and "scalar" not in words
    assert "take a batch: x 2 × 2." in a_training(mg.nn.Linear(2, 2), mg.ones((2, 2)), None,
                                                  lambda made, _: made.sum()).pages[0][0].say


def test_stacks_of_matrices_are_explained_where_they_are():
    convolution = mg.nn.Sequential(mg.nn.Conv2d(1, 2, 3), mg.nn.Flatten())
    books = [a_training(net, x, mg.asarray([0, 1])) for net, x in (
        (mg.nn.Linear(4, 3), mg.ones((2, 4))), (convolution, mg.ones((2, 1, 4, 4))))]
    assert ["the first matrices" in book.to_svg() for book in books] == [False, True]


def test_tensors_of_parameters_and_their_numbers_are_counted():
    book = a_training(mg.nn.Linear(3, 1), mg.ones((2, 3)), mg.ones((2, 1)), mg.nn.MSELoss())
    assert book.title == "training of Linear: 3 steps, 2 parameter tensors, 4 numbers"


def test_whole_numbers_of_a_batch_are_not_averaged():
    class Letters(mg.nn.Module):
        def __init__(self):
            self.table = mg.nn.Embedding(30, 3)

        def forward(self, x):
            return self.table(x).sum(1)

    x = mg.asarray(np.arange(120).reshape(6, 20) % 30)
    book = a_training(Letters(), x, mg.asarray([0, 1, 2, 0, 1, 2]))
    words = [text for *_, text in drawn_words(book)]
    rows = words[words.index("0 … 29") + 1 :]
    assert rows[:7] == [*[", ".join([str(k % 30) for k in range(i, i + 8)]) for i in range(0, 48, 8)], "…"]
    assert "0, 1, 2, 0, 1, 2" in words and "<title>x: " not in book.to_svg()


def test_rows_of_labels_and_of_predictions_have_one_count():
    """A row of labels had four numbers and the row of predictions beside it five: their widths differed."""
    net = mg.nn.Embedding(30, 30)
    x = mg.asarray(np.random.default_rng(0).integers(0, 30, (4, 16)))
    words = [text for *_, text in drawn_words(a_training(net, x, x.reshape(-1), lambda scores, y: mg.cross_entropy(
        scores.reshape(-1, 30), y)))]
    columns = [words[words.index(name) :][:10] for name in ("x", "y")]
    counts = [[row.count(",") for row in column if re.fullmatch(r"\d+(, \d+)+", row)] for column in columns]
    assert {*counts[0], *counts[1]} == {7} and len(counts[0]) == len(counts[1]) == 6


def test_classes_that_the_model_gives_stand_beside_the_labels():
    net = mg.nn.Linear(2, 3)
    with mg.no_grad():
        net.weight[...], net.bias[...] = 0.0, mg.asarray([0.0, 9.0, 0.0])
    words = [text for *_, text in drawn_words(a_training(net, mg.ones((4, 2)), mg.asarray([0, 1, 2, 1])))]
    below = words[words.index("predicted") :][1:4]
    assert "0, 1, 2, 1" in words and below == ["(4,)", "the largest score", "1, 1, 1, 1"]


@pytest.mark.parametrize("classes", [True, False])
def test_predictions_for_the_words_of_a_text_are_shown(classes):
    """Their scores have three dimensions.  Where the scores are of something else, they are a heat map."""
    net = mg.nn.Embedding(5, 5)
    x = mg.asarray([[0, 1, 2], [3, 4, 0]])
    book = a_training(net, x, x if classes else x[0], lambda scores, y: (scores**2).mean())
    words = [text for *_, text in drawn_words(book)]
    assert ("predicted" in words) == ("the largest score" in words) == classes != ("model(x)" in words)
    assert ("of 6 right" in book.pages[0][1].say) == classes
    if not classes:
        assert "2 × 3 × 5" in words and "<title>model(x): " in "".join(book.pages[0][-1].drawing.pieces)


def test_pictures_that_the_model_makes_stand_below_those_of_the_batch():
    net = mg.nn.Linear(6, 6)
    batch, forward, *_ = a_training(net, mg.ones((5, 4, 6)), mg.ones((5, 4, 6)), mg.nn.MSELoss()).pages[0]
    before, after = ("".join(page.drawing.pieces) for page in (batch, forward))
    assert before.count("<image") == 0  # a sequence, as far as a shape can tell
    batch, forward, *_ = a_training(net, mg.ones((5, 6, 6)), mg.ones((5, 6, 6)), mg.nn.MSELoss()).pages[0]
    before, after = ("".join(page.drawing.pieces) for page in (batch, forward))
    assert (before.count("<image"), after.count("<image")) == (10, 15) and "model(x): 5 × 6 × 6" in after  # y, too


def test_a_prediction_for_a_single_point_is_a_dot():
    pages = a_training(mg.nn.Linear(1, 1), mg.asarray([[2.0]]), mg.asarray([[3.0]]), mg.nn.MSELoss()).pages[0]
    drawn = ["".join(page.drawing.pieces).partition(">points: (x, y)")[2] for page in pages[:2]]
    assert [each.count("<circle") for each in drawn] == [1, 2]
    x = mg.linspace(0, 1, 101).reshape((101, 1))
    words = [text for *_, text in drawn_words(a_training(mg.nn.Linear(1, 1), x, x, mg.nn.MSELoss()))]
    assert "points: (x, y), the first 100; line: model(x)" in words


def test_the_batch_stands_beside_the_curves_and_nothing_jumps_between_phases():
    book = a_training(mg.nn.Linear(1, 1), *data(), mg.nn.MSELoss())
    [place] = [x for x, *_, text in drawn_words(book) if text.startswith("batch")]
    assert place > WIDE and book.pages[0][-1].drawing.height < 500
    tall = a_training(mg.nn.Sequential(*[mg.nn.Linear(9, 9) for _ in range(6)], mg.nn.Linear(9, 2)), mg.ones((40, 9)),
                      mg.asarray([0, 1] * 20))
    assert len({page.drawing.frame() for page in tall.pages[0]}) == 1
    bottom = max(y for *_, y, _, text in drawn_words(tall))
    drawn = "".join(tall.pages[0][-1].drawing.pieces)
    chart = re.findall(r'data-stops="[^"]+"><rect [^>]*y="([^"]+)" width="[^"]+" height="([^"]+)"', drawn)
    assert max(float(y) + float(high) for y, high in chart) < 480 < bottom  # a low window shows all of the curves


def test_parameters_that_are_single_numbers_need_no_colours():
    words = [text for *_, text in drawn_words(a_training(mg.nn.Linear(1, 1), *data(), mg.nn.MSELoss()))]
    assert not {"gradients ∂", *KEY} & {*words}
    words = [text for *_, text in drawn_words(a_training(mg.nn.Linear(2, 1), mg.ones((3, 2)), mg.ones((3, 1)),
                                                         mg.nn.MSELoss()))]
    assert {"gradients ∂", *KEY[:2]} <= {*words}


def test_small_gradients_have_colours_too():
    """At the end of a training they are much smaller than at its begin."""
    drawing = weights_drawn(Weights({"w": Seen.of(np.ones(3))}, {"w": Seen.of(np.array([1e-6, -2e-6, 0.0]))}))
    assert drawing.pieces[-1].count('fill="#d55e00"') == 1


def test_a_single_number_is_said_with_its_sign():
    net = mg.nn.Linear(1, 1)
    net.weight.data[...] = -1.5
    words = [text for *_, text in drawn_words(a_training(net, mg.asarray([[1.0]]), mg.asarray([[-2.0]]),
                                                         mg.nn.MSELoss()))]
    gradient, value, at = net.weight.grad.item(), net.weight.item(), len(words) - words[::-1].index("weight")
    assert value < 0 and words[at : at + 2] == [short(value), f"∂ {short(gradient)}"]


@pytest.mark.parametrize("shape", [(4, 10, 3), (8, 20, 16)])
def test_sequences_are_no_photographs(shape):
    net = mg.nn.Sequential(mg.nn.Flatten(), mg.nn.Linear(math.prod(shape[1:]), 1))
    book = a_training(net, mg.ones(shape), mg.ones((shape[0], 1)), mg.nn.MSELoss())
    assert "<image" not in book.to_svg() and ">{} × {} × {}<".format(*shape) in book.to_svg()


@pytest.mark.parametrize("features", [64, 784])
def test_rows_of_a_table_are_no_photographs(features):
    """Sixty-four measurements have as many numbers as a handwritten digit."""
    x = mg.asarray(np.random.default_rng(0).random((8, features), dtype=np.float32))
    svg = a_training(mg.nn.Linear(features, 1), x, mg.ones((8, 1)), mg.nn.MSELoss()).to_svg()
    assert "<image" not in svg and f">8 × {features}<" in svg
    with pytest.raises(mg.MinigradError, match=rf"rows is a tensor of shape \(8, {features}\)"):
        mg.viz.Dashboard(show="nothing").log(1, rows=x)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 4, 5, 3)])
def test_images_with_three_channels_have_colours(shape):
    """Red above, and the channels before or after height and width."""
    red = np.zeros((2, 4, 5, 3), np.float32)
    red[:, :2, :, 0] = 1.0
    x = mg.asarray(red if shape[-1] == 3 else np.moveaxis(red, -1, 1))
    net = mg.nn.Sequential(mg.nn.Flatten(), mg.nn.Linear(60, 1))
    svg = a_training(net, x, mg.ones((2, 1)), mg.nn.MSELoss()).to_svg()
    [first, second] = re.findall(r'base64,([^"]+)"', svg)
    assert first == second and pixels_of(base64.b64decode(first)) == [[(255, 0, 0)] * 5] * 2 + [[(0, 0, 0)] * 5] * 2


def pixels_of(content):
    """The colours of a PNG whose lines have no filter, row by row."""
    wide = int.from_bytes(content[16:20], "big")
    lines = zlib.decompress(content[content.index(b"IDAT") + 4:])
    rows = [lines[i + 1: i + 1 + 3 * wide] for i in range(0, len(lines), 3 * wide + 1)]
    return [[tuple(row[i: i + 3]) for i in range(0, len(row), 3)] for row in rows]


@pytest.mark.parametrize("size", [(30, 10), (10, 30), (12, 12)])
def test_pictures_of_a_batch_do_not_overlap(size):
    net = mg.nn.Sequential(mg.nn.Flatten(), mg.nn.Linear(math.prod(size), 1))
    svg = a_training(net, mg.ones((30, 1, *size)), mg.ones((30, 1)), mg.nn.MSELoss()).to_svg()
    pattern = r'<image x="([^"]+)" y="([^"]+)" width="([^"]+)" height="([^"]+)"'
    places = [[*map(float, found)] for found in re.findall(pattern, svg)]
    assert len(places) == 24 and f">x: 30 × 1 × {size[0]} × {size[1]}, the first 24<" in svg
    for (x, y, wide, high), (left, top, *_) in permutations(places, 2):
        assert wide / high == pytest.approx(size[1] / size[0], rel=0.02)
        assert not (x <= left < x + wide and y <= top < y + high)


def test_images_of_a_batch_have_their_labels():
    book = mg.viz.training(*a_reader())
    assert book.to_svg().count("<image ") == 3 and ">7</text>" in "".join(book.pages[0][0].drawing.pieces)


def a_reader():
    """A model of digits, with what `training` takes."""
    net = mg.nn.Sequential(mg.nn.Flatten(), mg.nn.Linear(64, 10))
    batch = mg.ones((3, 8, 8)), mg.asarray([3, 7, 1])
    return net, mg.optim.SGD(net.parameters(), lr=0.1), mg.nn.CrossEntropyLoss(), [batch]


def test_fit_logs_to_a_dashboard():
    w = mg.asarray([4.0], requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=0.25)

    def step(x):
        optimizer.zero_grad()
        loss = ((w - x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return {"loss": loss, "distance": abs(w - x).sum()}

    board = mg.viz.Dashboard(show="nothing")
    mg.train.fit(step, [2.0, 2.0], epochs=2, callbacks=[board], quiet=True)
    assert [*board.numbers["loss"].values()] == [4.0, 1.0, 0.25, 0.0625]
    assert [*board.numbers["distance"]] == [1, 2, 3, 4]


def test_nan_is_reported_and_not_drawn():
    board = mg.viz.Dashboard(show="nothing")
    for step, loss in enumerate([1.0, 2.0, math.nan, math.inf], 1):
        board.log(step, loss=loss)
    assert "▼ not finite" in board.to_svg() and "loss nan" in str(board.data()["pages"])
    assert "nan" not in board.to_svg().replace("loss 1 → inf", "") and "inf" in board.text()


def test_losses_may_be_arrays():
    book = mg.viz.training({"array": np.array([2.0, 1.0]), "tensor": mg.asarray([2.0, 1.5])})
    assert book.text().splitlines()[1].split()[:4] == ["loss,", "array", "2", "1"]
    board = mg.viz.Dashboard(show="nothing")
    board.log(1, loss=np.array(0.5))
    assert repr(board) == "<training: 1 step, loss 0.5 → 0.5>"


def test_a_run_is_drawn_up_to_the_largest_numbers():
    """One that diverges goes through them before it is infinite."""
    book = mg.viz.training([10.0**power for power in range(0, 309, 4)] + [math.inf])
    assert all(page.drawing.pieces for pages in book.pages for page in pages)


def test_a_dashboard_can_be_shown_before_its_first_step():
    board = mg.viz.Dashboard(show="nothing")
    assert repr(board) == "<training: nothing logged yet>" and board.text() == "nothing logged yet" and board.to_svg()


def test_dashboard_refuses_other_values():
    with pytest.raises(mg.MinigradError, match="no way to show 'loud'"):
        mg.viz.Dashboard(show="loud")
    board = mg.viz.Dashboard(show="nothing")
    with pytest.raises(mg.MinigradError, match=r"loss is a tensor of shape \(2,\)"):
        board.log(1, loss=mg.ones(2))
    with pytest.raises(mg.MinigradError, match="model is not a Module"):
        board.log(1, model=[])


@pytest.fixture
def notebook(monkeypatch):
    """A notebook without runs; the pictures that were shown in it.  `notebook.end()` ends the cell."""
    class Shown(list):
        def __init__(self):
            self.callbacks = []

        def register(self, event, call):
            assert event == "post_run_cell"
            self.callbacks.append(call)

        def unregister(self, event, call):
            self.callbacks.remove(call)

        def end(self):
            for call in [*self.callbacks]:
                call("what the cell gave")

    shown = Shown()

    class Screen:
        def update(self, picture):
            shown.append(picture)

    import IPython
    import IPython.display

    monkeypatch.setattr(IPython, "get_ipython", lambda: type("Shell", (), {"kernel": True, "events": shown})())
    monkeypatch.setattr(IPython.display, "display", lambda picture, display_id: shown.append(picture) or Screen())
    mg.viz.Dashboard.forget()
    yield shown
    mg.viz.Dashboard.forget()


def test_dashboard_updates_in_a_notebook(notebook):
    board = mg.viz.Dashboard()
    for step in range(1, 4):
        board.log(step, loss=1 / step)
        board._drawn -= OFTEN * (step == 1)  # as if a second had gone by
    assert len(notebook) == 2 and "data:image/svg" in notebook[0].data


def test_a_cell_ends_with_all_steps_in_the_picture(notebook):
    """Also if it took less time than there is between two pictures."""
    board = mg.viz.Dashboard()
    for cell in (1, 2):
        for step in range(4):
            board.log(4 * cell + step, loss=1.0)
        notebook.end()
        assert f"{4 * cell} steps up to step {4 * cell + 3}" in notebook[-1].data
    drawn = len(notebook)
    notebook.end()  # a cell without steps
    assert len(notebook) == drawn


def test_a_notebook_keeps_no_run_that_was_replaced(notebook):
    """When a cell is run again, there is a new dashboard with its name."""
    replaced = []
    for _ in range(3):
        board = mg.viz.Dashboard(name="run")
        board.log(1, loss=1.0)
        board.log(2, loss=0.5)
        assert [call.__self__ for call in notebook.callbacks] == [board]
        notebook.end()
        assert not notebook.callbacks and "2 steps" in notebook[-1].data
        replaced.append(weakref.ref(board))
    gc.collect()
    assert [each() for each in replaced] == [None, None, board]


def logged(losses, name=None, **numbers):
    board = mg.viz.Dashboard(show="nothing", name=name)
    for step, loss in enumerate(losses, 1):
        board.log(step, loss=loss, **numbers)
    return board


def test_the_runs_of_a_notebook_are_shown_over_each_other(notebook):
    first, second = logged([4.0, 2.0]), logged([3.0, 1.0, 0.5])
    assert (first.name, second.name) == ("run 1", "run 2") and [*second.runs()] == ["run 2", "run 1"]
    assert repr(second) == "<training: 3 steps, loss 3 → 0.5>"
    said = [page.say for page in second.book().pages[0]]
    assert said[0] == "After step 1: loss 3 in run 2, 4 in run 1." and "2 (at step 2) in run 1" in said[2]
    assert second.to_svg().count('class="mg-curve"') == 2 and "run 1</text>" in second.to_svg()
    again = logged([3.5, 0.1], "run 2")
    assert again.runs()["run 2"] is again and [*second.runs()] == ["run 2"]  # its place is taken
    other = mg.viz.Dashboard(show="nothing")
    other.log(1, reward=2.0)
    assert [*other.runs()] == [other.name]  # it has no number with them in common
    many = [logged([i]) for i in range(9)]
    assert len(many[-1].runs()) == 5 == len(mg.viz.Dashboard._begun_here)
    mg.viz.Dashboard.forget()
    assert [*many[-1].runs()] == [many[-1].name]


def test_outside_of_a_notebook_a_run_stands_alone():
    first, second = logged([4.0, 2.0]), logged([3.0, 1.0])
    assert first.name == second.name and [*second.runs()] == ["run 1"]


def test_training_draws_logs_over_each_other():
    history = mg.train.History([{"loss": 2.0, "accuracy": 0.5}, {"loss": 1.0, "accuracy": 0.75}])
    book = mg.viz.training({"a": logged([4.0, 2.0, math.nan]), "b": history, "c": [8.0, 1.0]})
    assert repr(book) == "<training: 3 runs, 3 steps>" and book.start == len(book.pages[0]) - 1
    lines = [line.split()[:4] for line in book.text().splitlines()[1:]]
    assert lines == [["loss,", "a", "4", "nan"], ["loss,", "b", "2", "1"], ["loss,", "c", "8", "1"],
                     ["accuracy,", "b", "0.5", "0.75"]]
    assert [page.say for page in book.pages[0]][1] == (
        "After step 2: loss 2 in a, 1 in b, 1 in c; accuracy 0.75 in b.")
    assert "▼ not finite" in book.to_svg()
    assert [knob.settings for knob in book.knobs] == [("as it fits", "linear", "logarithmic")]


def test_a_logarithmic_axis_shows_what_is_above_zero():
    book = mg.viz.training([3.0, 0.0, -1.0, 2.0, 30.0])
    linear, logarithmic = (book.pages[i][-1].drawing for i in (1, 2))
    paths = [re.search('mg-curve"[^>]*><path d="([^"]+)', "".join(d.pieces))[1] for d in (linear, logarithmic)]
    assert ">loss, logarithmic; without what is 0 or less<" in "".join(logarithmic.pieces)
    assert [path.count("M") for path in paths] == [1, 2] and [len(re.findall("[ML]", path)) for path in paths] == [5, 3]
    assert mg.viz.training([-1.0, -2.0]).pages[2][0].drawing.pieces  # nothing is above zero: the axis is linear


def test_training_refuses_what_is_no_log():
    with pytest.raises(mg.MinigradError, match=r"3\.0 is not the log of a run with steps"):
        mg.viz.training(3.0)
    with pytest.raises(mg.MinigradError, match=r"\[\] is not the log of a run with steps"):
        mg.viz.training({"a": []})
    with pytest.raises(mg.MinigradError, match="6 runs can't be drawn together"):
        mg.viz.training({str(i): [1.0] for i in range(6)})
    with pytest.raises(mg.MinigradError, match="loss is a list"):
        mg.viz.training({"a": [[1.0], [2.0]]})


# logs of any kind -----------------------------------------------------------------------------------------------------


def test_the_steps_that_were_logged_are_counted():
    """A loop may begin at 0; if it logs now and then, its last step has another number."""
    zero, rare = mg.viz.Dashboard(show="nothing"), mg.viz.Dashboard(show="nothing")
    for step in range(5):
        zero.log(step, loss=1.0)
        rare.log(step, lr=0.1)  # a step may be logged in parts
        rare.log(100 * step + 100, loss=1.0)
    assert repr(zero) == "<training: 5 steps, loss 1 → 1>"
    assert repr(rare).startswith("<training: 10 steps up to step 500, ")
    assert mg.viz.training({"zero": zero}).title == "training: 1 run, 5 steps"
    below = mg.viz.Dashboard(show="nothing")
    below.log(-3, loss=1.0)
    assert [page.count for page in below.book().pages[0]] == ["step -3 / -3"]


def test_of_several_values_in_a_step_the_last_one_counts():
    board = mg.viz.Dashboard(show="nothing")
    for step, loss in ((2, 7.0), (1, 10.0), (1, 9.5), (2, 6.0), (2, 6.5), (1, 9.0)):
        board.log(step, loss=loss)
    assert repr(board) == "<training: 2 steps, loss 9 → 6.5>" and board.text().split()[5:] == ["9", "6.5", "6.5", "9"]
    assert [page.say for page in board.book().pages[0]] == ["After step 1: loss 9.", "After step 2: loss 6.5."]


def test_a_run_that_is_resumed_has_the_pictures_of_its_new_steps():
    board, net = mg.viz.Dashboard(show="nothing"), mg.nn.Linear(2, 2)
    for run, steps in enumerate((range(1, 11), range(6, 13)), 1):
        for step in steps:
            with mg.no_grad():
                net.weight[...] = 100.0 * run
            board.log(step, loss=1.0, model=net)
    found = {step: weights.values["weight"].norm for step, weights in board.weights.items()}
    assert found == {step: 400.0 if step >= 6 else 200.0 for step in range(1, 13)}


def test_a_run_that_is_resumed_has_the_numbers_of_its_new_steps():
    """Not one old and one new value of each step, between which its curve would go up and down."""
    board = mg.viz.Dashboard(show="nothing")
    for run, steps in enumerate((range(1, 6), range(3, 6)), 1):
        for step in steps:
            board.log(step, loss=float(run))
            board.log(step, other=1.0)  # what else is logged at the step stays
    assert board.numbers == {"loss": {1: 1.0, 2: 1.0, 3: 2.0, 4: 2.0, 5: 2.0}, "other": dict.fromkeys(range(1, 6), 1.0)}
    assert repr(board).startswith("<training: 5 steps, ")


@pytest.mark.parametrize("losses", [[1e308, -1e308] * 3000, [1e308, -1e308, 1e308, -1e308, 1e308], [1e308] * 4000])
def test_the_largest_numbers_are_drawn_without_a_warning(losses):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for view in (mg.viz.training(losses), mg.viz.training({"a": losses, "b": losses[::-1]})):
            assert view.to_svg() and view.text()
        assert Seen.of(np.full((3, 40), 1e308) * [[1], [-1], [np.inf]]).about == "norm inf"


def test_the_least_and_the_largest_value_may_be_infinite():
    board = mg.viz.Dashboard(show="nothing")
    for step, loss in enumerate([1.0, math.nan, math.inf, -math.inf, 2.0]):
        board.log(step, loss=loss, never=math.nan)
    assert [line.split() for line in board.text().splitlines()[1:]] == [
        ["loss", "1", "2", "−inf", "inf"], ["never", *["nan"] * 4]]


@pytest.mark.parametrize("step", [0.5, "3", math.nan])
def test_a_step_is_a_whole_number(step):
    board = mg.viz.Dashboard(show="nothing")
    with pytest.raises(mg.MinigradError, match="step is not an integer"):
        board.log(step, loss=1.0)
    assert repr(board) == "<training: nothing logged yet>"


def test_a_number_may_be_an_array_with_one_element_and_is_real():
    board = mg.viz.Dashboard(show="nothing")
    for step, loss in enumerate([np.ones((1, 1)), mg.asarray([[1.0]]), np.float16(1), np.bool_(True), mg.jit(mg.sum)(
            mg.ones(1))], 1):
        board.log(np.int64(step), loss=loss)
    assert board.numbers["loss"] == dict.fromkeys(range(1, 6), 1.0)
    for strange in (np.complex64(1 + 2j), np.str_("1"), None):
        with pytest.raises(mg.MinigradError, match=f"loss is a {type(strange).__name__}"):
            board.log(6, loss=strange)


@pytest.mark.parametrize("values", [[1e308, -1e308, 0.0], [1.7e308] * 2, [5e-324, 1e-323], [2e-30, 1e-30, 3e-30]])
def test_numbers_of_any_size_have_axes(values):
    for page, *_ in mg.viz.training(values).pages:
        names = re.findall(r'text-anchor="end"[^>]*>([^<]+)<', "".join(page.drawing.pieces))
        assert len({*names}) == len(names) > 2


def test_the_change_of_large_weights_is_computed_without_an_overflow():
    net = mg.nn.Linear(1, 1)
    x, y = mg.asarray([[1e10], [-2e10]]), mg.asarray([[1e18], [3e18]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        book = mg.viz.training(net, mg.optim.SGD(net.parameters(), lr=0.1), mg.nn.MSELoss(), [(x, y)] * 1)
    assert "in all, against the gradient" in book.pages[0][-1].say
