"""The view of a step on many workers: what it says, its curves, one step over time, and its errors."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import minigrad as mg
from minigrad.distributed import Machine, Step, step_time
from minigrad.distributed.ring import allreduce
from minigrad.distributed.simulate import ASSUMPTIONS
from minigrad.viz.clusters import COUNTS, lanes_of, ring_rounds
from tests.viz.browser import needs_browser, opened, settled

MACHINE = Machine(latency=20e-6, bandwidth=10e9)
STEP = Step.even(24, forward=0.05, backward=0.1, gradients=1e9, update=0.01)
WHAT_IF = {
    "1 MB buckets": {"bucket": 1e6}, "one slow worker": {"slow": 1, "slowdown": 1.5}, "sharded": {"sharded": True},
}


@pytest.fixture(scope="module")
def book():
    return mg.viz.cluster(STEP, MACHINE, WHAT_IF, measured={2: 0.2})


def words_of(drawing):
    return re.findall(r">([^<]+)</text>", "".join(drawing.pieces))


@pytest.mark.slow
def test_the_text_has_the_times_of_the_model(book):
    assert repr(book) == "<a step on 1 to 4,096 workers, by a model>"
    lines = [re.split(r"  +", line.strip()) for line in book.text().splitlines()]
    assert lines[0] == ["workers", "a step", "efficiency", "waiting", "sent"] and len(lines) == 1 + 4 * len(COUNTS)
    found = step_time(STEP, MACHINE, 64, bucket=1e6)
    row = lines[1 + 4 * COUNTS.index(64) + 1]
    assert row == ["1 MB buckets", f"{found.seconds:.3g} s", f"{found.efficiency:.0%}", f"{found.waiting:.0%}",
                   f"{found.bytes / 1e9:.3g} GB"]


def test_each_number_of_workers_has_curves_and_a_step_over_time(book):
    assert [len(pages) for pages in book.pages] == [2] * len(COUNTS) and book.opening == len(COUNTS) // 2
    for count, (curves, step) in zip(COUNTS, book.pages):
        time = step_time(STEP, MACHINE, count)
        assert curves.say == step.say and f"{time.waiting:.0%} of it waiting" in curves.say
        assert f"{count:,} worker" in curves.say
        assert sum("of it waiting for the network" in text for text in words_of(step.drawing)) >= 4


def test_the_assumptions_stand_in_the_picture(book):
    texts = words_of(book.pages[0][0].drawing)
    assert all(line in " ".join(texts) for line in ASSUMPTIONS) and {*WHAT_IF, "as given", "measured"} <= {*texts}
    assert "as given" not in words_of(mg.viz.cluster(STEP, MACHINE).pages[0][0].drawing)


def test_the_panel_lists_all_settings_of_the_first_and_what_the_others_change(book):
    blocks = {name: dict(block[1]["rows"]) for name, block in book.pages[6][0].blocks[1:]}
    assert blocks["as given"]["buckets"] == "40" and blocks["as given"]["gradients"] == "1 GB"
    assert blocks["as given"]["bandwidth"] == "10 GB/s" and blocks["as given"]["latency"] == "20 µs"
    slow = {"slow": "1 of the workers", "slowdown": "a slow worker takes 1.5 times as long"}
    assert blocks["one slow worker"] | slow == blocks["one slow worker"]
    assert blocks["as given"]["jitter"] == "a worker is late by 0 of its time, on average"
    assert {name: len(rows) for name, rows in blocks.items()} == {
        "as given": 15, "1 MB buckets": 3, "one slow worker": 3, "sharded": 2}


def test_the_panel_compares_all_variants_first(book):
    heading, (_, table) = book.pages[1][0].blocks[0]
    assert heading == "compared; efficiency = undisturbed own work ÷ a step"
    assert table["head"] == ("", "a step", "efficiency", "waiting", "sent")
    time = step_time(STEP, MACHINE, 2)
    assert table["rows"][0] == ("as given", f"{time.seconds * 1e3:.3g} ms", f"{time.efficiency:.0%}",
                                f"{time.waiting:.0%}", f"{time.bytes / 1e9:.3g} GB")
    assert [row[0] for row in table["rows"]] == ["as given", *WHAT_IF, "measured"]


def test_the_panel_says_why_a_single_bucket_does_not_overlap():
    step = Step.even(4, 0.01, 0.01, 1e6)
    book = mg.viz.cluster(step, MACHINE, {"no overlap": {"overlap": False}}, workers=(1, 8))
    (_, first), (_, second) = [(name, dict(block[1]["rows"])) for name, block in book.pages[1][0].blocks[1:]]
    assert first["buckets"] == "1, full when computing ends" and second["overlap"] == "no"


def test_the_panel_names_the_algorithm_that_was_taken():
    machine, step = Machine(latency=1e-3, bandwidth=1e9), Step.even(2, 0.01, 0.01, 1e4)
    book = mg.viz.cluster(step, machine, workers=(2, 4096))
    sent = [dict(page.blocks[1][1][1]["rows"])["summed by"] for page, _ in book.pages]
    ways = [machine.allreduce(1e4, count).algorithm for count in (2, 4096)]
    assert sent == ways and len(set(ways)) == 2


def test_one_worker_sums_nothing():
    page, _ = mg.viz.cluster(STEP, MACHINE, {"sharded": {"sharded": True}}, workers=(1, 2)).pages[0]
    assert [dict(block[1]["rows"]).get("summed by") for _, block in page.blocks[1:]] == ["nothing is sent"] * 2


def test_what_was_measured_is_one_more_curve():
    book = mg.viz.cluster(STEP, MACHINE, workers=(1, 2, 4), measured={4: 0.2, 2: 0.9})
    first, _, last = ("".join(page.drawing.pieces) for page, _ in book.pages)
    assert first.count("<circle") == 4 and last.count("<circle") == 5 and first.count('class="mg-curve"') == 5
    paths = re.findall('mg-curve"><path d="([^"]+)', first)
    lines = [[float(y) for y in re.findall(r"[ML]\S+ ([\d.]+)", path)] for path in paths]
    assert len(lines[1]) == 2 and 18 < lines[1][0] < min(lines[0])  # from 2 workers to 4, inside of the chart


def test_a_single_measurement_is_seen_on_every_page():
    book = mg.viz.cluster(STEP, MACHINE, workers=(1, 2, 4), measured={2: 0.2})
    drawings = ["".join(page.drawing.pieces) for page, _ in book.pages]
    plain = mg.viz.cluster(STEP, MACHINE, workers=(1, 2, 4)).pages[0][0].drawing
    assert drawings[0].count("<circle") == "".join(plain.pieces).count("<circle") + 1
    assert [page.blocks[0][1][1]["rows"][1:] for page, _ in book.pages] == [[], [("measured", "200 ms")], []]


def test_the_efficiency_of_the_title_is_that_of_the_table():
    """Own work divided by the time of a step, for a batch of each worker and for a batch that they share."""
    for step, share in ((STEP, 1), (replace(STEP, fixed_batch=True), 1 / 8)):
        page = mg.viz.cluster(step, MACHINE, workers=(1, 8)).pages[1][0]
        assert "efficiency = own work ÷ time of a step (%)" in words_of(page.drawing)
        row = page.blocks[0][1][1]["rows"][0]
        assert row[2] == f"{share * STEP.seconds / step_time(step, MACHINE, 8).seconds:.0%}"


def test_workers_at_the_axis_are_powers_of_two(book):
    texts = words_of(book.pages[0][0].drawing)
    assert {"1", "64", "1,024", "4,096"} <= {*texts} and not {"1,020", "4,100"} & {*texts}


@pytest.mark.parametrize("workers", [(3, 5, 6), (5, 7), (3, 100), (1, 1_000_000)])
def test_any_numbers_of_workers_have_an_axis(workers):
    drawing = mg.viz.cluster(STEP, MACHINE, workers=workers).pages[0][0].drawing
    named = re.findall(r'text-anchor="middle"[^>]*>([^<]+)<', "".join(drawing.pieces))
    numbers = [float(name.replace(",", "").rstrip("k")) * 1000 ** name.endswith("k") for name in named]
    assert len(numbers) > 4 and numbers == [*map(round, numbers)]


def test_percentages_have_linear_axes():
    step, slow = Step.even(24, 0.05, 0.1, 1e9), Machine(latency=1e-3, bandwidth=1e8)
    texts = words_of(mg.viz.cluster(step, slow).pages[0][0].drawing)
    efficiency = texts[texts.index("efficiency = own work ÷ time of a step (%)") + 1 :]
    end = efficiency.index("the slowest worker waits for the network (%)")
    shown = [float(text) for text in efficiency[:end] if re.fullmatch(r"[\d.]+", text)]
    assert {0.0, 50.0, 100.0} <= {*shown}  # at equal distances


def test_many_transfers_that_follow_each_other_are_few_bars():
    many = mg.viz.cluster(STEP, MACHINE, {"small": {"bucket": 1e6}}, workers=(32, 64)).pages[1][1].drawing
    assert sum(len(lane.bars) for lane in lanes_of(step_time(STEP, MACHINE, 64, bucket=1e6))) == 1049
    assert "".join(many.pieces).count("<rect") < 600 and ">network</text>" in "".join(many.pieces)


def test_layers_and_buckets_that_are_too_narrow_alone_are_one_bar():
    deep = Step.even(48, forward=0.2, backward=0.6, gradients=7e9)
    texts = words_of(mg.viz.cluster(deep, MACHINE, workers=(1, 64)).pages[1][1].drawing)
    assert {"48 × forward", "48 × backward", "280 × ring"} <= {*texts} and "update" not in texts  # which takes no time
    few = words_of(mg.viz.cluster(Step.even(2, 0.01, 0.03, 5e7), MACHINE, workers=(1, 64)).pages[1][1].drawing)
    assert few.count("forward") == 2 + 1 and few.count("ring") == 2  # the legend has the colour of the first


def test_no_line_of_the_axis_goes_through_words(book):
    drawn = "".join(book.pages[5][1].drawing.pieces)
    lines = [[*map(float, each)] for each in re.findall(r'<path d="M(\S+) (\S+)L\S+ ([^"]+)"[^>]*stroke="#c', drawn)]
    said = [float(y) for y in re.findall(r'<text [^>]*y="([^"]+)"[^>]*>[^<]*waiting for the network<', drawn)]
    assert len(said) == 4 and len(lines) >= 4 * 3
    assert not [y for y in said for _, top, bottom in lines if top < y < bottom]


def test_the_time_of_a_step_has_one_unit(book):
    for _, page in book.pages:
        texts = words_of(page.drawing)
        ticks = [text for text in texts[texts.index("dashed: a model") :] if re.fullmatch(r"[\d.]+ (µs|ms|s)", text)]
        assert len(ticks) > 2 and len({text.split()[1] for text in ticks}) == 1 and ticks[0].startswith("0 ")


def test_the_model_refuses_what_it_cannot_draw():
    with pytest.raises(mg.MinigradError, match="the messages of 1 worker can't be drawn"):
        mg.viz.cluster(1)
    with pytest.raises(mg.MinigradError, match="1 number of workers and 0 changes"):
        mg.viz.cluster(STEP, MACHINE, workers=[8])
    with pytest.raises(mg.MinigradError, match="13 numbers of workers and 5 changes"):
        mg.viz.cluster(STEP, MACHINE, {str(i): {} for i in range(5)})
    with pytest.raises(mg.MinigradError, match="has a field 'buckets'"):
        mg.viz.cluster(STEP, MACHINE, {"small": {"buckets": 1e6}})
    with pytest.raises(mg.MinigradError, match=r"\{'small': 3\} does not name a change"):
        mg.viz.cluster(STEP, MACHINE, {"small": 3})


@pytest.mark.parametrize("name", ["as given", "measured", 1])
def test_a_change_has_a_name_of_its_own(name):
    """A change named "as given" took the place of the step as it was given."""
    with pytest.raises(mg.MinigradError, match=f"{{{name!r}: .*}} does not name a change"):
        mg.viz.cluster(STEP, MACHINE, {name: {"bucket": 1e6}}, measured={2: 0.2})


@pytest.mark.parametrize("measured", [{0: 1.0}, {-3: 1.0}, {2: 0.0}, {2: math.nan}, {2: math.inf}, {2: "1"}])
def test_what_was_measured_are_seconds_of_workers(measured):
    with pytest.raises(mg.MinigradError, match="measured is a dictionary of seconds by workers, not"):
        mg.viz.cluster(STEP, MACHINE, workers=(1, 2), measured=measured)


def test_a_number_of_workers_may_be_an_integer_of_numpy():
    assert repr(mg.viz.cluster(np.int64(4))) == repr(mg.viz.cluster(4))


@pytest.mark.parametrize("workers", [2, 3, 7, 8])
@pytest.mark.parametrize("size", [1, 3, 6])
def test_the_figures_of_an_all_reduce_are_those_of_the_messages_of_the_real_ring(workers, size):
    """Also of a vector that is shorter than the number of workers."""
    sent = [0] * workers

    def total(comm):
        send = comm.start_send

        def counting(array, to):
            sent[comm.rank] += array.nbytes
            return send(array, to)

        comm.start_send = counting
        array = np.arange(float(size)) + comm.rank
        allreduce(comm, array)
        return array

    arrays = [np.arange(float(size)) + rank for rank in range(workers)]
    sums = mg.distributed.ThreadCommunicators(workers).run(total)
    rounds = ring_rounds(arrays)
    held = [np.concatenate([chunk.numbers for chunk in each]) for each in rounds[-1].held]
    assert np.array_equal(held, sums)
    _, ring, _ = mg.viz.cluster(arrays).text().splitlines()
    assert ring.split()[1:] == [str(2 * (workers - 1)), str(sum(sent)), "B", str(max(sent)), "B",
                                str(2 * (workers - 1) * -(-size // workers) * 8), "B"]


@needs_browser
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("size", [(1600, 900), (900, 900)])
def test_all_four_charts_are_in_the_frame_with_one_legend(book, size):
    with opened(book.to_html(), size=size) as page:
        charts, frame = page.locator("[data-stops]"), page.locator(".mg-canvas").bounding_box()
        boxes = [charts.nth(i).bounding_box() for i in range(4)]
        assert charts.count() == 4 and page.get_by_text("one slow worker", exact=True).count() == 3  # and in the facts
        for box in boxes:
            assert box["x"] + box["width"] < frame["x"] + frame["width"]
            assert box["y"] + box["height"] < frame["y"] + frame["height"]
        assert page.locator("svg").get_by_text("workers", exact=True).count() == 1  # below the axes


@needs_browser
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("dark", [False, True])
def test_the_slider_sets_the_number_of_workers(book, dark):
    with opened(book.to_html(), size=(960, 700), dark=dark) as page:
        assert "64 workers" in page.inner_text(".mg-say")
        page.get_by_role("button", name="one step").click()
        page.locator("input[type=range]:visible").first.fill("12")
        assert "4,096 workers" in page.inner_text(".mg-say")
        settled(page)
        width = page.evaluate("document.querySelector('svg').getBoundingClientRect().width")
        widest = page.evaluate(
            "Math.max(...[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().right))")
        assert widest <= page.evaluate("document.querySelector('svg').getBoundingClientRect().left") + width


@needs_browser
@pytest.mark.xdist_group("browser")
def test_home_and_end_move_the_slider_that_has_the_focus(book):
    with opened(book.to_html(), size=(960, 700)) as page:
        page.locator("input[type=range]:visible").first.focus()
        for key, workers in (("End", "4,096 workers"), ("Home", "1 worker:")):
            page.keyboard.press(key)
            assert workers in page.inner_text(".mg-say") and page.locator(".mg-view").get_attribute("data-step") == "0"


@needs_browser
@pytest.mark.xdist_group("browser")
def test_on_a_narrow_screen_nothing_is_cut_and_the_curves_are_near_their_slider():
    same = mg.viz.cluster(STEP, MACHINE, {"again": {}}, workers=(2, 4, 8))
    with opened(same.to_html(), size=(390, 844)) as page:
        settled(page)
        assert page.evaluate("[...document.querySelectorAll('.mg-side, .mg-side *')].every("
                             "(each) => each.scrollHeight <= each.clientHeight + 1 || !each.clientHeight)")
        top = page.locator(".mg-picture").bounding_box()["y"] - page.locator(".mg-knobs").bounding_box()["y"]
        rights = page.locator(".mg-side *").evaluate_all("(all) => all.map((e) => e.getBoundingClientRect().right)")
        assert max(rights) <= 390 - 10
        assert top < 300 and page.get_by_text("compared").bounding_box()["y"] > 700
