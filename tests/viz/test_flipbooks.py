"""Flipbooks, and the views that are flipbooks: the data for the page are correct."""

import json
import math
import re

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.look.watching import watching
from minigrad.distributed import ThreadCommunicators, ring
from minigrad.support import files
from minigrad.viz.clusters import ring_rounds, star_rounds
from minigrad.viz.colours import themed
from minigrad.viz.drawing import Axes, Chart, Drawing, Scale
from minigrad.viz.flipbook import Flipbook, Knob, Page
from minigrad.viz.numbers import blocks_of, cells_of, letters_of, short
from minigrad.viz.svg import squares

HOSTILE = "</script><script>alert(1)</script>\"'&{}javascript:\ue000bad\ue001"


def small_book(say="here"):
    drawings = []
    for i in range(3):
        drawing = Drawing(60, 40)
        drawing.rect(0, 0, 20, 20, "there-fill", "there", about="a box", go=f"page:{i}")
        drawing.text(0, 30, f"page {i}")
        drawings.append(Page(drawing, f"{say} {i}", (("numbers", ("table", {"head": None, "rows": [["a", str(i)]]})),)))
    return Flipbook("three pages", [drawings], unit="page")


# Flipbooks ------------------------------------------------------------------------------------------------------------


def test_small_matrices_are_shown_whole():
    assert blocks_of(np.array([[1.0, 2.0], [3.0, 4.0]]), 2, 2).tolist() == [[1, 2], [3, 4]]
    assert blocks_of(np.arange(8.0).reshape(4, 2), 2, 2).tolist() == [[1, 2], [5, 6]]


@pytest.mark.parametrize("shape", [(8, 1, 3, 3), (16, 3, 2, 2), (2, 5, 2, 4)])
def test_kernels_are_shown_whole(shape):
    """A square was the mean of rows of several kernels."""
    kernels = np.random.default_rng(0).standard_normal(shape)
    shown = kernels.reshape(-1, *shape[-2:])[:3]
    rows = [letters_of(each, np.abs(shown).max()).split("/") for each in shown]
    assert cells_of(kernels).split("/") == [" ".join(each) for each in zip(*rows)]


def test_between_two_matrices_of_a_heat_map_is_a_line():
    """White would be the colour of zeros."""
    [gap, zero] = [squares(cells, 0.0, 0.0, 8.0) for cells in ("A A", "A.A")]
    assert gap.count("<path") == 2 and zero.count("<path") == 1


def test_pieces_are_stored_once():
    data = small_book().data()
    pages = data["pages"][0]
    assert len(data["pieces"]) == 6 and [len(page[0]) for page in pages] == [2, 2, 2]
    assert len({page[0][0] for page in pages}) == 3  # each box leads to another page
    same = Flipbook("same", [[small_book().pages[0][0]] * 5]).data()
    assert len(same["pieces"]) == 2


def test_each_setting_has_its_pages():
    drawing = Drawing(1, 1)
    pages = [[Page(drawing, f"{x}{y}")] for x in "ab" for y in "123"]
    data = Flipbook("grid", pages, (Knob("x", ("a", "b")), Knob("y", ("1", "2", "3"), start=2))).data()
    assert [page[0][1] for page in data["pages"]] == ["a1", "a2", "a3", "b1", "b2", "b3"]
    assert data["knobs"][1]["start"] == 2


def test_hostile_names_do_no_harm():
    drawing = Drawing(100, 100)
    drawing.text(0, 0, HOSTILE)
    drawing.rect(0, 0, 1, 1, about=HOSTILE, go="page:0")
    book = Flipbook(HOSTILE, [[Page(drawing, HOSTILE, ((HOSTILE, ("text", HOSTILE)),))]])
    page = book.to_html()
    assert page.count("<script") == 2 and "alert(1)</script>" not in page
    assert "<script" not in drawing.to_svg(HOSTILE) and "\ue000" not in drawing.to_svg("x")
    assert json.loads(json.dumps(book.data()))["about"] == HOSTILE


def test_colours_come_from_the_theme_or_the_file():
    drawing = Drawing(10, 10)
    drawing.rect(0, 0, 5, 5, "back-fill", "now")
    (piece,) = drawing.pieces
    assert 'fill="var(--back-fill)"' in themed(piece) and 'stroke="#e69f00"' in piece


def test_charts_skip_values_that_are_not_numbers():
    drawing = Drawing(200, 100)
    Axes(drawing, (0, 0, 200, 100), (0.0, 1.0), (0.0, 1.0)).curve([(0, 0), (0.5, math.nan), (1, math.inf)])
    assert "nan" not in "".join(drawing.pieces) and "inf" not in "".join(drawing.pieces)


def test_long_texts_are_cut_to_fit():
    drawing = Drawing(10, 10)
    drawing.text(0, 0, "a very long name", room=40)
    assert "…<title>a very long name</title>" in drawing.pieces[0]


def books():
    net = mg.nn.Sequential(mg.nn.Linear(1, 4), mg.nn.Tanh(), mg.nn.Linear(4, 1))
    for i, p in enumerate(net.parameters()):
        p.detach()[...] = 0.1 * i + mg.arange(p.size, dtype=mg.float32).reshape(p.shape) * 0.05
    x = mg.linspace(-1, 1, 5).reshape((5, 1))
    return [
        mg.viz.cluster(3),
        mg.viz.cluster(mg.distributed.Step.even(4, 0.1, 0.2, 1e8), mg.distributed.Machine(1e-5, 1e9, jitter=0.1)),
        mg.viz.bench(lambda: mg.tanh(x) + 1),
        mg.viz.memory(lambda: net(x).sum()),
        mg.viz.bench(mg.sin),
        mg.viz.training(net, mg.optim.SGD(net.parameters(), lr=0.1), mg.nn.MSELoss(), [(x, x * x)] * 2),
    ]


@pytest.mark.slow
def test_outputs_are_complete_and_deterministic():
    for one, other in zip(books(), books()):
        bundle = one._repr_mimebundle_()
        assert bundle == other._repr_mimebundle_()
        assert "<img alt=" in bundle["text/html"] and bundle["image/svg+xml"].startswith("<svg ")
        assert bundle["text/plain"].startswith(f"{one!r}\n") and len(bundle["text/plain"].splitlines()) > 1
        assert "nan" not in one.to_svg() and len(one.to_html()) < 400_000


def test_flipbooks_are_saved_to_files(tmp_path):
    book = small_book()
    for ending in ("html", "svg", "txt"):
        book.save(tmp_path / f"book.{ending}")
        assert (tmp_path / f"book.{ending}").stat().st_size
    with pytest.raises(mg.MinigradError, match=r"can't be saved as 'book\.doc'"):
        book.save(tmp_path / "book.doc")


# ring -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", range(2, 9))
@pytest.mark.parametrize("size", [1, 7, 16])
def test_every_worker_ends_with_the_sum(workers, size):
    arrays = np.random.default_rng(workers).standard_normal((workers, size))
    for rounds in (list(ring_rounds(arrays)), list(star_rounds(arrays))):
        for row in rounds[-1].held:
            np.testing.assert_allclose(np.concatenate([chunk.numbers for chunk in row]), arrays.sum(0))
        assert all(chunk.of == frozenset(range(workers)) for row in rounds[-1].held for chunk in row)


def test_after_reduce_scatter_each_worker_has_one_complete_chunk():
    rounds = [r for r in ring_rounds(np.ones((5, 10))) if r.phase == "reduce-scatter"]
    complete = [[len(chunk.of) == 5 for chunk in row] for row in rounds[-1].held]
    assert [sum(row) for row in complete] == [1] * 5 and [sum(column) for column in zip(*complete)] == [1] * 5


def test_workers_of_a_ring_send_twice_the_array_less_two_chunks():
    n, size = 4, 64
    sent = dict.fromkeys(range(n), 0)
    for r in ring_rounds(np.ones((n, size))):
        for message in r.messages:
            sent[message.sender] += r.held[message.receiver][message.chunk].numbers.nbytes
    assert set(sent.values()) == {2 * (n - 1) * size * 8 // n}


class Noted:
    """The communicator of a rank, which notes each message: the receiver, and the number of the chunk."""

    def __init__(self, comm, chunks):
        self.comm, self.rank, self.size, self.chunks, self.sent = comm, comm.rank, comm.size, chunks, []

    def start_send(self, x, to):
        self.sent.append((to, [chunk is x for chunk in self.chunks].index(True)))
        return self.comm.start_send(x, to)

    def recv(self, source, like):
        return self.comm.recv(source, like)


@pytest.mark.parametrize("n", [2, 5])
def test_the_messages_of_the_view_are_those_of_the_ring(n):
    """In the same order, and with the same numbers in the end."""
    arrays = np.random.default_rng(n).standard_normal((n, 7))

    def run(comm):
        noted = Noted(comm, [chunk.copy() for chunk in np.array_split(arrays[comm.rank], n)])
        ring.reduce_scatter(noted, noted.chunks, np.add)
        ring.allgather(noted, noted.chunks)
        return noted

    ranks, rounds = ThreadCommunicators(n).run(run), ring_rounds(arrays)
    for rank in ranks:
        assert rank.sent == [(m.receiver, m.chunk) for r in rounds for m in r.messages if m.sender == rank.rank]
        np.testing.assert_array_equal(np.concatenate(rank.chunks),
                                      np.concatenate([chunk.numbers for chunk in rounds[-1].held[rank.rank]]))


def test_the_words_beside_the_slider_say_which_round_is_seen():
    book = mg.viz.cluster([np.ones(1)] * 3)
    rounds = [[page.count for page in pages] for pages in book.pages]
    assert rounds == [[f"round {i} / 4" for i in range(5)]] * 2
    assert repr(book) == "<all-reduce of 3 workers, 1 number each: 4 rounds in a ring>"
    assert book.start == 0 and "Squares: " in book.pages[0][0].say and "Done: " in book.pages[0][-1].say


def test_the_first_page_says_the_aim_and_what_the_colours_are():
    first = mg.viz.cluster(3).pages[0][0].say
    assert first.startswith("At the end, each of 3 workers has the sum of all 3 arrays.")
    assert "Pale blue" in first and "Yellow frame" in first


def test_cluster_takes_arrays_and_refuses_what_it_cannot_draw():
    book = mg.viz.cluster([mg.ones(4), mg.zeros(4), np.ones(4, np.float32)])
    assert "3 workers, 4 numbers" in repr(book)
    figures = dict(book.pages[0][-1].blocks[0][1][1]["rows"])
    assert figures["sent one after another"] == "32 B"  # the largest chunk has two numbers
    assert dict(book.pages[1][2].blocks[0][1][1]["rows"])["sent one after another"] == "32 B"
    with pytest.raises(mg.MinigradError, match="messages of 1 worker can't be drawn"):
        mg.viz.cluster(1)
    with pytest.raises(mg.MinigradError, match="of one size and type"):
        mg.viz.cluster([np.ones(3), np.ones(4)])
    with pytest.raises(mg.MinigradError, match="workers sum numbers"):
        mg.viz.cluster([np.array(["a"])] * 2)


def test_chunks_show_whole_numbers_and_say_how_many_there_are():
    arrays = np.random.default_rng(0).normal(scale=[[0.02], [1e-4], [30.0]], size=(3, 22)).astype(np.float32)
    book = mg.viz.cluster([*arrays])
    drawn = book.pages[0][-1].drawing.pieces
    words = re.findall(r">([^<>]+)</text>", "".join(drawn))
    first = [short(number) for number in arrays.sum(0).tolist()]
    assert "</title></text>" not in "".join(drawn) and words.count("chunk 0 (8)") == 1  # nothing is cut
    shown = [text for text in words if text.endswith(", …")]
    assert len(shown) == 9 and all(number in first for text in shown for number in text.split(", ")[:-1])


def test_cluster_says_which_of_its_forms_an_argument_belongs_to():
    step, machine = mg.distributed.Step.even(4, 0.1, 0.2, 1e8), mg.distributed.Machine(1e-5, 1e9)
    with pytest.raises(mg.MinigradError, match=r"is neither a number of workers(.|\n)*measure_step"):
        mg.viz.cluster(mg.tanh)
    with pytest.raises(mg.MinigradError, match="belong to the model of a step"):
        mg.viz.cluster(4, machine)
    with pytest.raises(mg.MinigradError, match=r"a step needs a machine(.|\n)*Expected: cluster\(step, machine\)"):
        mg.viz.cluster(step)
    for name in ("ring", "scaling"):
        with pytest.raises(mg.MinigradError, match=rf"no view mg.viz.{name} any more(.|\n)*mg.viz.cluster"):
            getattr(mg.viz, name)
    with pytest.raises(mg.MinigradError, match="the model of a step on many workers"):
        mg.viz.scaling  # noqa: B018


# watching -------------------------------------------------------------------------------------------------------------


def test_kernel_tables_are_restored():
    device = mg.ones(1).device
    before, elementwise = dict(device.kernels), type(device).elementwise
    with pytest.raises(mg.MinigradError), watching():
        mg.ones(2) + mg.ones(3)
    assert device.kernels == before and device.elementwise.__func__ is elementwise


def test_a_watched_function_computes_the_same():
    x = mg.asarray(np.random.default_rng(0).standard_normal((400, 400)).astype(np.float32))
    with watching() as calls:
        y = mg.softmax(x.T * 2, axis=0)
    with mg.eager_programs(False):
        np.testing.assert_array_equal(y.numpy(), mg.softmax(x.T * 2, axis=0).numpy())
    assert any(call.shared for call in calls)


def test_values_are_refused():
    for view in (mg.viz.timeline,):
        with pytest.raises(mg.MinigradError, match="Tensor"):
            view(mg.ones(2))


def test_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    path = tmp_path / "page.txt"
    view = mg.viz.step(mg.ones((), requires_grad=True) * 2)
    view.save(path)
    before = path.read_text()
    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        view.save(path)
    assert path.read_text() == before and [each.name for each in tmp_path.iterdir()] == ["page.txt"]


def test_a_narrow_bar_shows_the_number_of_its_layer():
    chart = Chart(200, 60)
    chart.bar(0, 0, 80, 20, "quiet", "a", "layer 1")
    chart.bar(90, 0, 30, 20, "quiet", "b", "layer 2")
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", chart.to_svg("two bars"))
    assert shown == ["layer 1", "2"]


@pytest.mark.parametrize("level", [0.0, 1.08, 42.0, 502.3, -502.3, 1234.0, 48_000.0, 1e6, 1.5e7, 1e-9])
@pytest.mark.parametrize("spread", [0.0, 1e-5, 0.01, 3.0])
def test_ticks_of_an_axis_have_different_names(level, spread):
    """A loss that hardly changes had the same number at each line."""
    ticks = Scale((level, level + spread), 0.0, 160.0).ticks(28)
    assert len(ticks) > 1 and len({name for _, name in ticks}) == len(ticks), ticks
    assert [place for place, _ in ticks] == sorted(place for place, _ in ticks)
    numbers = [float(name.replace(",", "").replace("−", "-").replace("k", "e3")) for _, name in ticks]
    steps = np.diff(numbers)
    assert steps.max() - steps.min() < 0.01 * steps.mean(), "no number is rounded"
    assert spread or max(len(name) for _, name in ticks) < 7, "a curve without change leaves its names short"


@pytest.mark.parametrize("ends", [(0.2, 9.0), (0.15, 40.0), (1e-5, 3e4), (0.9, 1.1), (2.0, 30.0)])
@pytest.mark.parametrize("height", [42.0, 60.0, 300.0])
def test_ticks_of_a_logarithmic_axis_do_not_touch(ends, height):
    places = sorted([place for place, _ in Scale(ends, height, 0.0, True).ticks(24)])
    assert len(places) > 1 and min(np.diff(places)) >= 9.0
