"""The views in their hosts: JupyterLab, Notebook 7, pages of nbconvert, slides, and untrusted notebooks.

Real clicks and keys in a real browser, on what the page holds afterwards; and nothing may leave this machine.
"""

import copy
import json
import re
import shlex
import shutil
import subprocess
import sys
from html import escape

import pytest

import minigrad as mg
from minigrad.viz.exhibit import LOADER, script_of
from tests.viz.browser import needs_browser, opened, outputs, settled
from tests.viz.jupyter import ROOT, needs_jupyter, notebook, server, stop_kernels, surroundings

pytestmark = [needs_browser, needs_jupyter, pytest.mark.slow]

STEP = """\
import minigrad as mg
w = mg.asarray([[0.1, 0.2], [0.3, -0.4]], requires_grad=True)
x = mg.asarray([[0.5, -1.0]])
h = mg.tanh(x @ w)
mg.viz.step((h * h).sum())"""
GRAPH = "mg.viz.graph((h * h).sum(), backward=True)"
WIDGET = "steps = mg.viz.step((h * h).sum()).widget()\nsteps"
ASKED = "steps.step"


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory):
    """A server, and the folder of its notebooks, with one for each host."""
    folder, work = tmp_path_factory.mktemp("jupyter"), tmp_path_factory.mktemp("work")
    for host in ("lab", "tree"):
        (work / f"{host}.ipynb").write_text(json.dumps(notebook(STEP, GRAPH, WIDGET, ASKED)))
    with server(folder, work) as address:
        yield address, work


URLS = {"lab": "{}/lab/tree/{}?reset", "tree": "{}/notebooks/{}"}


def open_notebook(jupyter, host, name):
    return opened(url=URLS[host].format(jupyter[0], name), size=(1250, 950), strict=False)


def run(page, number):
    """Click into a cell, run it by keys, and return its output."""
    cell = page.locator(".jp-CodeCell").nth(number)
    begun = cell.locator(".jp-InputPrompt", has_text=re.compile(r"\[[*\d]+\]"))
    for _ in range(200):  # a cell that is run before the kernel has started does not run
        question = page.locator(".jp-Dialog .jp-mod-accept")
        if question.count():  # the dialog that offers kernels
            question.click()
        cell.locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")
        page.wait_for_timeout(300)
        if begun.count():
            break
    output = cell.locator(".jp-OutputArea-output").first
    output.wait_for()
    return output


def ready(page):
    page.wait_for_selector(".jp-CodeCell .cm-content")
    page.wait_for_selector(".jp-Spinner", state="detached")


def at(view):
    return int(view.get_attribute("data-step"))


def zoomed(page, view):
    """The width of a picture before and after zooming in, each as it is drawn and as the view has set it."""
    svg = view.locator(".mg-canvas svg").first
    widths = "svg => [svg.getBoundingClientRect().width, +svg.getAttribute('width')]"
    settled(page)
    before = svg.evaluate(widths)
    view.locator(".mg-canvas").hover()
    page.keyboard.down("Control")
    for _ in range(6):
        page.mouse.wheel(0, -100)
    larger = "([svg, least]) => +svg.getAttribute('width') > least"
    page.wait_for_function(larger, arg=[svg.element_handle(), 1.9 * before[1]])  # all turns have come
    page.keyboard.up("Control")
    return before, svg.evaluate(widths)


def test_no_name_becomes_a_formula_and_a_short_run_is_seen_to_its_end(jupyter):
    """Jupyter reads what is between dollars as maths."""
    log = "board = __import__('minigrad').viz.Dashboard()\nfor s in range(3): board.log(s, **{'cost $a': s, 'b$': s})"
    (jupyter[1] / "dollars.ipynb").write_text(json.dumps(notebook(log, "board")))
    with open_notebook(jupyter, "lab", "dollars.ipynb") as page:
        ready(page)
        live, view = run(page, 0), run(page, 1).locator(".mg-say")
        live.get_by_text("training: 3 steps, cost $a 0 → 2, b$ 0 → 2").wait_for()
        view.get_by_text("After step 2: cost $a 2; b$ 2.").wait_for()
        assert page.locator(".jp-OutputArea mjx-container").count() == 0


@pytest.mark.parametrize("host", ["lab", "tree"])
def test_views_survive_a_run_a_save_and_reopening(jupyter, host):
    address, work = jupyter
    with open_notebook(jupyter, host, f"{host}.ipynb") as page:
        ready(page)
        view = run(page, 0).locator(".mg-view")
        view.wait_for()
        begin = at(view)
        before, after = zoomed(page, view)  # a host's style for pictures would shrink it to the width of the cell
        assert before[0] == pytest.approx(before[1], abs=1) and after[0] == pytest.approx(after[1], abs=1)
        assert after[0] > 1.5 * before[0]
        view.get_by_text("next ›").click()
        assert at(view) == begin + 1
        view.focus()
        cells = page.locator(".jp-Cell").count()
        for key in ("ArrowRight", "x", "b", "ArrowRight"):  # Jupyter's x cuts the cell, b makes another one
            page.keyboard.press(key)
        assert at(view) == begin + 3 and page.locator(".jp-Cell").count() == cells
        page.keyboard.press(" ")
        page.wait_for_function(f"document.querySelector('.mg-view').dataset.step > {begin + 3}")
        page.keyboard.press("End")
        assert at(view) == int(view.locator(".mg-track input").get_attribute("max"))

        picture = run(page, 1).locator(".mg-view")
        picture.locator(".mg-box", has_text="x @ w").first.click()
        assert "what it computes" in picture.locator(".mg-side").inner_text()

        widget = run(page, 2).locator(".mg-view")
        widget.wait_for()
        widget.get_by_text("next ›").click()
        assert run(page, 3).inner_text().strip() == str(begin + 1)  # the click reached Python

        with page.expect_response(lambda answer: answer.request.method == "PUT" and "/contents/" in answer.url):
            page.keyboard.press("Control+s")
    saved = json.loads((work / f"{host}.ipynb").read_text())
    forms = {"text/html", "image/svg+xml", "text/plain"}
    assert forms == set(saved["cells"][0]["outputs"][0]["data"])
    stop_kernels(address)

    strange = copy.deepcopy(saved)  # as a student gets it from a teacher: not signed on this machine
    strange["cells"][0]["source"] += "  # changed"
    strange["cells"][0]["outputs"][0]["data"]["text/plain"] += " "
    (work / f"strange-{host}.ipynb").write_text(json.dumps(strange))
    with open_notebook(jupyter, host, f"strange-{host}.ipynb") as page:
        ready(page)
        image = page.locator(".jp-OutputArea-output img").first
        image.wait_for()
        assert image.evaluate("image => image.naturalWidth") > 100
        assert image.get_attribute("alt") == "".join(saved["cells"][0]["outputs"][0]["data"]["text/plain"])
        assert page.locator(".mg-view").count() == 0
        assert "passes back to" in page.locator("details").first.text_content()

    with open_notebook(jupyter, host, f"{host}.ipynb") as page:  # in its own host, without running a cell
        ready(page)
        view = page.locator(".mg-view").first
        view.wait_for()
        view.get_by_text("next ›").click()
        assert at(view) == begin + 1


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """A notebook with outputs that was run without a browser."""
    folder = tmp_path_factory.mktemp("executed")
    (folder / "a.ipynb").write_text(json.dumps(notebook(STEP, GRAPH)))
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--inplace", "a.ipynb"]
    subprocess.run(command, cwd=folder, env=surroundings(folder), check=True, capture_output=True)
    return folder


def test_outputs_are_the_same_each_time(executed):
    """What nbval compares: every form of every output, without the scripts, which change more often."""
    saved = json.loads((executed / "a.ipynb").read_text())
    for cell in saved["cells"]:
        data = cell["outputs"][0]["data"]
        data["text/html"] = re.sub(LOADER, "", "".join(data["text/html"]))
    (executed / "older.ipynb").write_text(json.dumps(saved))
    shutil.copy(ROOT / "conftest.py", executed)
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["older.ipynb"]
    done = subprocess.run(command, cwd=executed, env=surroundings(executed), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_nbconvert_pages_work_offline(executed):
    from nbconvert import HTMLExporter

    page_of, _ = HTMLExporter().from_filename(executed / "a.ipynb")
    own = ("require", "mathjax", "mermaid")  # requests of nbconvert's own page, none of them ours
    with opened(page_of, allowed=own, strict=False) as page:
        view = page.locator(".mg-view").first
        before, after = zoomed(page, view)
        assert after[0] == pytest.approx(after[1], abs=1) and after[0] > 1.5 * before[0]
        view.get_by_text("next ›").click()
        assert at(view) == 5
        assert page.locator(".mg-view").count() == 2


def test_nbconvert_markdown_contains_pictures(executed):
    from nbconvert import MarkdownExporter

    text, resources = MarkdownExporter().from_filename(executed / "a.ipynb")
    assert text.count('<img alt="') == 2 and sum(name.endswith(".svg") for name in resources["outputs"]) == 2
    assert "<script" not in text and "const " not in text and "passes back to" in text


def test_nbconvert_markdown_refers_to_files_with_the_option_that_the_page_names(executed):
    """The bundle alone cannot have it so: of all forms of an output, nbconvert's Markdown takes HTML first."""
    command = re.search(r"jupyter (nbconvert --to markdown) my.ipynb (.*)", (ROOT / "lectures/share.md").read_text())
    saved = json.loads((executed / "a.ipynb").read_text())
    table = {"text/html": "<table>7</table>", "text/plain": "7"}
    saved["cells"][1]["outputs"].append({"output_type": "display_data", "metadata": {}, "data": table})
    (executed / "my.ipynb").write_text(json.dumps(saved))
    run = [sys.executable, "-m", *command[1].split(), "my.ipynb", *shlex.split(command[2])]
    subprocess.run(run, cwd=executed, env=surroundings(executed), check=True, capture_output=True)
    text = (executed / "my.md").read_text()
    pictures = re.findall(r"!\[svg\]\((\S+)\)", text)
    assert len(pictures) == 2 and all((executed / name).read_text().startswith("<svg ") for name in pictures)
    assert "onload" not in text and "base64" not in text and max(map(len, text.splitlines())) < 200
    assert "<table>7</table>" in text


def small():
    w = mg.asarray([[0.1, 0.2], [0.3, -0.4]], requires_grad=True)
    h = mg.tanh(mg.asarray([[0.5, -1.0]]) @ w)
    return (h * h).sum()


def test_keys_for_a_view_do_not_turn_the_slide():
    with opened(outputs(mg.viz.step(small()))) as page:
        view = page.locator(".mg-view")
        begin = at(view)
        view.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press(" ")
        page.keyboard.press("q")
        assert at(view) >= begin + 1 and page.evaluate("window.slides") == 0


def test_large_data_is_stored_compressed():
    model = mg.nn.Sequential(*[mg.nn.Linear(4, 4) for _ in range(3)])
    view = mg.viz.step(model(mg.ones((2, 4))).sum())
    added = len(view._repr_mimebundle_()["text/html"]) - len(view._static())
    assert added < (len(json.dumps(view.data())) + len(script_of("step"))) / 2
    with opened(outputs(view)) as page:
        page.locator(".mg-view").wait_for()
        page.get_by_text("next ›").click()
        assert page.locator(".mg-box", has_text="1 Linear").count() == 2


def test_views_on_one_page_are_independent():
    loss = small()
    with opened(outputs(mg.viz.step(loss), mg.viz.step(loss), mg.viz.graph(loss))) as page:
        views = page.locator(".mg-view")
        assert views.count() == 3
        begin = at(views.nth(1))
        views.nth(0).get_by_text("next ›").click()
        assert (at(views.nth(0)), at(views.nth(1))) == (begin + 1, begin)


HOSTILE = [
    "</script><script>window.hurt=1</script>", '"><img src=x onerror="window.hurt=1">', "javascript:window.hurt=1",
    "`${window.hurt=1}`", "<b>&amp;</b>", "{x|y}\\",
]


def test_hostile_names_are_shown_and_do_nothing():
    names = {name: mg.asarray([1.0, 2.0], requires_grad=True) for name in HOSTILE}
    loss = mg.zeros(())
    for name, w in names.items():
        with mg.scope(name):
            loss = loss + (w * 2).sum()
    step, graph = mg.viz.step(loss, names=names), mg.viz.graph(loss, names=names, backward=True)
    for html, closed in ((step.to_html(), True), (graph.to_html(), False), (outputs(step, graph), True)):
        with opened(html) as page:
            page.locator(".mg-view").first.focus()
            if closed:
                page.keyboard.press("c")
            page.locator(".mg-box").first.click()
            settled(page)
            assert page.evaluate("window.hurt") is None and page.locator("b").count() == 0
            shown = page.locator(".mg-box text, .mg-frame text").all_text_contents()
            assert all(name in shown for name in HOSTILE)
            assert page.locator("script[src], img[src=x], a[href]").count() == 0


def test_static_picture_is_shown_without_scripts():
    for view in (mg.viz.step(small()), mg.viz.graph(small())):
        with opened(view.to_html(), scripts=False) as page:
            assert page.locator("svg, img").first.is_visible() and page.locator(".mg-view").count() == 0


def test_nothing_writes_to_stderr_or_warns(executed):
    cells = json.loads((executed / "a.ipynb").read_text())["cells"]
    assert not [output for cell in cells for output in cell["outputs"] if output["output_type"] == "stream"]


VSCODE = ("default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
          "img-src https: data:; font-src https:; connect-src https:")


@pytest.mark.parametrize("rules", ["", VSCODE])
def test_sandboxed_frames_show_the_view(rules):
    """The outputs of Colab and of VS Code are in a sandboxed frame; VS Code's rules forbid requests and workers."""
    head = f'<meta http-equiv="Content-Security-Policy" content="{rules}">' if rules else ""
    board = mg.viz.Dashboard(show="nothing")
    for step in (1, 2):
        board.log(step, loss=1.0 / step)
    inside = escape(outputs(mg.viz.step(small()), board, mg.viz.fusion(mg.tanh, mg.ones(3)), head=head))
    with opened(f'<iframe sandbox="allow-scripts" width="1000" height="600" srcdoc="{inside}"></iframe>') as page:
        frame = page.frame_locator("iframe")
        frame.locator(".mg-view").nth(2).wait_for()
        view = frame.locator("#slide > div").nth(0).locator(".mg-view")
        begin = at(view)
        view.get_by_text("next ›").click()
        view.press("ArrowRight")
        assert at(view) == begin + 2 and frame.locator("#slide > div > figure > div > .mg-view").count() == 3
        assert frame.locator("#slide > div").nth(1).locator(".mg-canvas .mg-curve").count() == 1


def test_views_follow_the_theme_of_the_host():
    page_of = mg.viz.step(small()).to_html()
    themes = {
        'class="vscode-dark"': True, 'class="vscode-light"': False, 'class="vscode-high-contrast"': True,
        'class="vscode-high-contrast-light vscode-high-contrast"': False, 'data-jp-theme-light="false"': True,
        'data-jp-theme-light="true"': False,
    }
    for mark, dark in themes.items():
        with opened(re.sub("<body", f"<body {mark}", page_of), dark=not dark) as page:
            colour = page.evaluate("getComputedStyle(document.querySelector('.mg-view')).backgroundColor")
            assert (colour == "rgb(20, 24, 29)") == dark, mark
