"""What is passed on: a saved page with a title, a sentence and the code, and a film of the steps."""

import os
import re
import stat
import sys
from functools import cache
from io import BytesIO

import pytest

import minigrad as mg
from minigrad import nn
from minigrad.viz.drawing import Drawing
from minigrad.viz.films import film, with_sentences
from minigrad.viz.flipbook import Flipbook, Knob, Page
from minigrad.viz.quoting import quoted
from tests.viz.browser import needs_browser, opened

HOSTILE = "</script><img src=x onerror=alert(1)>"


def loss_of(x):
    a = 2 * x
    return a * a + a


@cache
def step():
    return mg.viz.step(loss_of(mg.asarray(1.0, requires_grad=True)))


def saved(view, folder, **words):
    view.save(folder / "view.html", **words)
    return (folder / "view.html").read_text(encoding="utf-8")


# pages --------------------------------------------------------------------------------------------------------------


def test_a_page_has_a_title_a_sentence_and_the_code(tmp_path):
    text = saved(step(), tmp_path, says="One x, two paths.")
    intro = re.search(r"<header.*?</header>", text, re.DOTALL)[0]
    assert "<h1>Backprop of a · a + a</h1><p>One x, two paths.</p>" in intro
    assert "# test_passed_on.py\ndef loss_of(x):\n    a = 2 * x\n    return a * a + a" in intro
    assert str(tmp_path) not in text and os.path.dirname(__file__) not in text
    assert "<title>Backprop of a · a + a</title>" in text


def test_an_author_chooses_the_words(tmp_path):
    text = saved(step(), tmp_path, title="Mine", code="x = 1 < 2")
    assert "<h1>Mine</h1><details><summary>the code</summary><pre>x = 1 &lt; 2</pre>" in text
    assert "<details><summary>the code" not in saved(step(), tmp_path, code=False)


def test_words_of_an_author_run_no_script(tmp_path):
    text = saved(step(), tmp_path, title=HOSTILE, says=HOSTILE, code=HOSTILE)
    assert HOSTILE not in text and "<img src=x" not in text


def test_other_forms_take_the_same_arguments(tmp_path):
    step().save(tmp_path / "step.svg", title="a", says="b", code=False)
    assert (tmp_path / "step.svg").read_text(encoding="utf-8") == step().to_svg()


@pytest.mark.parametrize("view, title", [
    (lambda: mg.viz.graph(loss_of, mg.ones(3)), "Graph of a · a + a"),
    (lambda: mg.viz.memory(mg.jit(loss_of), mg.ones(3)), "Memory: "),
])
def test_a_view_of_a_function_quotes_it(tmp_path, view, title):
    text = saved(view(), tmp_path)
    assert f"<h1>{title}" in text and "def loss_of(x):" in text


def test_a_gradient_has_its_own_heading_and_no_part_in_the_title(tmp_path):
    jitted = mg.jit(loss_of)
    x = mg.asarray(1.0, requires_grad=True)
    jitted(x).backward()
    view = mg.viz.fusion(jitted, x)
    assert view.gradient is not None
    assert f"<h1>{view.said()[0].upper()}{view.said()[1:]}</h1>" in saved(view, tmp_path)


def test_of_a_long_function_and_of_a_file_only_the_lines_are_quoted_that_made_something():
    unused = [f"    unused_{i} = {i}" for i in range(80)]
    lines = ["def f(x):", *unused, "    y = x * 2", "    return mg.tanh(", "        y)"]
    found = {"mg": mg}
    exec(compile("\n".join(lines), __file__, "exec"), found)  # the lines quoted are this file's
    x = mg.asarray(1.0, requires_grad=True)
    nodes = found["f"](x).node
    code = {node.where[0].co_name: node.where for node in (nodes, nodes.inputs[0])}
    assert set(code) == {"f"}
    assert len(quoted([nodes]).splitlines()) == 3  # the name of the file, and two lines


def test_the_page_of_a_notebook_cell_names_no_file(tmp_path):
    import linecache

    source = "def g(x):\n    return x * 3\n"
    name = "<ipython-input-1>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    found = {}
    exec(compile(source, name, "exec"), found)
    node = found["g"](mg.asarray(1.0, requires_grad=True)).node
    assert quoted([node]) == source.rstrip()


@needs_browser
@pytest.mark.parametrize("size", [(1600, 900), (900, 900)])
@pytest.mark.parametrize("view", ["step", "graph", "memory"])
def test_a_saved_page_fills_its_window(tmp_path, view, size):
    made = step() if view == "step" else getattr(mg.viz, view)(mg.jit(loss_of), mg.ones(3))
    made.save(tmp_path / "view.html", says="A sentence.")
    with opened(url=(tmp_path / "view.html").as_uri(), size=size) as page:
        page.locator(".mg-canvas svg").wait_for()
        bottom = page.locator(".mg-view").evaluate("view => view.getBoundingClientRect().bottom")
        assert bottom == pytest.approx(size[1], abs=1)
        assert page.evaluate("document.documentElement.scrollHeight") <= size[1]
        summary = page.get_by_text("the code", exact=True)
        summary.click()
        assert "def loss_of" in page.locator(".mg-intro pre").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]


@needs_browser
def test_in_a_frame_only_the_view_is_seen(tmp_path):
    step().save(tmp_path / "view.html", says="A sentence.")
    (tmp_path / "around.html").write_text('<!doctype html><iframe src="view.html" width="800" height="600"></iframe>')
    with opened(url=(tmp_path / "around.html").as_uri()) as page:
        page.frame_locator("iframe").locator(".mg-view").wait_for()
        assert page.frame_locator("iframe").locator(".mg-intro").is_hidden()


# films --------------------------------------------------------------------------------------------------------------


def test_the_steps_of_a_backward_pass_are_pictures():
    frames = [*step().frames()]
    steps = step().steps
    added = [then.kind == "sum" for then in steps[1:]]  # then the picture is that of the sum
    arrows = [step()._said(each) for each, soon in zip(steps, [*added, False]) if not soon]
    assert [says for _, says in frames] == ["The forward pass computes a · a + a.", *arrows]
    numbers = [re.findall(r'mg-number">([^<]*)</', svg) for svg, _ in frames]
    assert numbers[0][4:] == ["", "", "", ""] and numbers[-1][4:] == ["10", "5", "1", "1"]  # no number is not 0
    assert [svg.count("mg-awaited") for svg, _ in frames[:3]] == [4, 3, 2] and ' opacity="0.4"' in frames[0][0]
    assert "mg-awaited" not in frames[-1][0] and ' opacity="0.4"' not in frames[-1][0]
    assert [*step().frames()] == frames


def pages(count):
    return [Page(Drawing(100, 50), f"page {i}") for i in range(count)]


def test_a_flipbook_plays_its_pages_or_its_settings():
    assert [says for _, says in Flipbook("f", [pages(3)]).frames()] == ["page 0", "page 1", "page 2"]
    turned = Flipbook("f", [pages(1), pages(1)], (Knob("k", ("a", "b")),))
    assert len([*turned.frames()]) == 2
    knobs = Knob("k", ("a", "b", "c")), Knob("l", ("d", "e"), start=1)
    said = [Page(Drawing(9, 9), f"{i}") for i in range(6)]
    assert [says for _, says in Flipbook("f", [[page] for page in said], knobs).frames()] == ["1", "3", "5"]


def test_a_dashboard_plays_its_moments():
    """A film of it was refused, because it would have no steps."""
    board = mg.viz.Dashboard(show="nothing")
    for number in (1, 2, 3):
        board.log(number, loss=1 / number)
    assert [says for _, says in board.frames()] == [page.say for page in board.book().pages[0]]
    assert len([*board.frames()]) == 3


def test_the_pictures_of_a_film_have_one_size():
    drawings = [(Drawing(900, 20).to_svg("a"), "short"), (Drawing(10, 200).to_svg("b"), "<b>" + "long " * 60)]
    first, second = with_sentences(drawings)
    assert (first.width, first.height) == (second.width, second.height) and first.width == 920.0
    assert len(second.pieces) > 3 and "&lt;b&gt;" in second.to_svg("")


def test_the_sentence_below_a_wide_picture_is_as_large_as_below_a_small_one():
    """A film is at most 1,200 pixels wide."""
    small, wide = (with_sentences([(Drawing(width, 90).to_svg(""), "a " * 90)] * 2)[0] for width in (580, 3580))
    sizes = [float(re.search('font-size="(.*?)"', still.pieces[-1])[1]) for still in (small, wide)]
    assert sizes[1] == pytest.approx(3 * sizes[0])


def test_a_gif_plays_the_steps_and_begins_again(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("resvg_py")
    step().save(tmp_path / "step.gif")
    film = image.open(BytesIO((tmp_path / "step.gif").read_bytes()))
    assert film.n_frames == len([*step().frames()]) and film.info["loop"] == 0
    assert film.width <= 1200 and film.info["duration"] == 1000
    film.seek(film.n_frames - 1)
    assert film.info["duration"] == 4000


def test_what_cannot_be_a_film_is_refused(tmp_path):
    with pytest.raises(mg.MinigradError, match=r"0 steps for a film[\s\S]*x.png"):
        mg.viz.graph(loss_of, mg.ones(3)).save(tmp_path / "x.gif")
    with pytest.raises(mg.MinigradError, match=r"201 steps for a film[\s\S]*from 2 to 200"):
        film([*Flipbook("f", [pages(201)]).frames()], ".gif")


def test_a_mp4_needs_ffmpeg(tmp_path, monkeypatch):
    pytest.importorskip("resvg_py")
    monkeypatch.setenv("PATH", str(tmp_path))
    book = Flipbook("f", [pages(2)])
    with pytest.raises(mg.MinigradError, match=r"needs the program ffmpeg[\s\S]*\.gif"):
        book.save(tmp_path / "x.mp4")


@pytest.mark.skipif(sys.platform == "win32", reason="the program in the place of ffmpeg is a script")
def test_ffmpeg_is_given_the_pictures_and_its_errors_are_told(tmp_path, monkeypatch):
    pytest.importorskip("resvg_py")
    book = Flipbook("f", [pages(2)])
    program = tmp_path / "ffmpeg"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for script, works in (('for last; do :; done\ncat > "$last"', True), ("echo bad pixels >&2; exit 3", False)):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IEXEC)
        if works:
            book.save(tmp_path / "x.mp4")
            assert (tmp_path / "x.mp4").read_bytes().count(b"\x89PNG") == 5  # the last one stays for 4 seconds
            continue
        with pytest.raises(mg.MinigradError, match=r"could not write the film: bad pixels"):
            book.save(tmp_path / "x.mp4")


def test_a_film_speaks_of_what_is_in_its_picture():
    blocks = [nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.LayerNorm(4)) for _ in range(6)]
    net = nn.Sequential(*blocks)
    view = mg.viz.step((net(mg.ones((2, 4))) ** 2).mean())
    titles = {box.title.split(" = ")[0] for box in view.parts[0].scene.boxes}
    said = [says.rpartition(":")[0].split(" passes back to ") for _, says in view.frames()]
    passed = [names for names in said if len(names) == 2]
    assert len(passed) >= 6 and all(name in titles for names in passed for name in names)
    assert len(passed) == 8  # what comes out of a closed box comes once for each arrow
