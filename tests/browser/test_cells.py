"""Cells that readers of the site edit and run: the archives that a page loads, and pages in Chromium and Firefox."""

import io
import json
import re
import time
import zipfile
from importlib.metadata import distributions

import pytest

from lectures.site import build_site
from lectures.site.browser import live
from lectures.site.frames import page
from lectures.site.markup import Lecture, LectureError, as_page, as_slides
from tests.browser.cells import STATUS, Cells, site_of
from tests.browser.lite import served
from tests.viz.browser import PATIENCE, needs_browser, opened
from tests.viz.firefox import Firefox, needs_firefox

TEXT = """# Cells

```run
hidden = 1
```

```try
a = mg.asarray(3.0, requires_grad=True)
print("ready")
```

```try
y = a * a
mg.viz.step(y)
```

```try
def f(x):
    return 1 / x

f(2)
```

```try
import minigrad_course as course
course.task("mul_grad")
```
"""


def made(editable=True):
    lecture = Lecture("cells", TEXT, editable=editable)
    return lecture, as_page(lecture)


# ---- what is built ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_without_live_cells_a_cell_is_code_with_its_output():
    lecture, body = made(editable=False)
    assert 'class="try"' not in body and body.count('<pre class="code">') == 5
    assert '<pre class="output">ready\n</pre>' in body and 'src="live/cells-' in body
    shown = page("cells", "Cells", body)
    assert "cells.js" not in shown and "cells.css" not in shown
    assert 'class="try"' not in as_slides(lecture)


def test_live_cells_have_their_output_from_the_beginning():
    lecture, body = made()
    assert body.count('<div class="try"><pre class="code">') == 4
    assert '<div class="said"><pre class="output">ready\n</pre>' in body
    assert re.search(r'<div class="said"><div class="live"><iframe src="live/cells-\d+\.html"', body)
    shown = page("cells", "Cells", body)
    assert '<script src="cells.js">' in shown and 'href="cells.css"' in shown
    assert 'class="try"' not in as_slides(lecture)


def test_on_slides_a_view_stands_without_its_code():
    slides = as_slides(Lecture("cells", "# T\n\n## One\n\n```try\nmg.viz.graph(mg.tanh, mg.ones(2))\n```"))
    assert "<iframe" in slides and "<code" not in slides


def test_cells_share_names_with_cells_only():
    text = "# T\n\n```run\nmine = 1\n```\n\n```try\nmine\n```"
    with pytest.raises(LectureError, match="mine"):
        as_page(Lecture("cells", text))


@pytest.mark.slow
def test_the_archive_of_minigrad_is_the_package():
    names = zipfile.ZipFile(io.BytesIO(live.minigrad())).namelist()
    assert {"minigrad/__init__.py", "minigrad_course/page.py", "minigrad/viz/static/step.js"} <= {*names}
    assert "minigrad/data/sets/digits.npz" in names and "latex2mathml/unimathsymbols.txt" in names
    assert not any(name.endswith((".pyi", ".pyc")) for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)  # what is passed on has its licence with it


@pytest.mark.slow
def test_the_package_that_writes_formulas_can_be_imported(tmp_path):
    """Its first line reads its version, and without it a view shows formulas as code."""
    path = tmp_path / "minigrad.zip"
    path.write_bytes(live.minigrad())
    (found,) = distributions(name="latex2mathml", path=[str(path)])
    assert found.version and "License" in str(found.metadata)


def test_the_files_of_another_server_are_checked_by_the_browser():
    files = live.files_at("https://example.org/full/")
    assert {file.name for file in files} == {*live.SIZES}
    assert all(file.address.startswith("https://example.org/full/") and not file.content for file in files)
    assert all(re.fullmatch(r"sha256-[\w+/]{43}=", file.integrity) for file in files)


@pytest.mark.slow
def test_a_page_loads_less_than_its_budget(site_folder):
    sizes = {path.name: path.stat().st_size for path in (site_folder / live.PYTHON).iterdir()}
    assert sum(size for name, size in sizes.items() if name != "bundle.js") < 11e6
    assert sizes["minigrad.zip"] < 2e6 and sizes["numpy.zip"] < 2.7e6 and sizes["bundle.js"] < 15e6


def test_a_wrong_folder_is_refused_before_anything_is_built(tmp_path):
    with pytest.raises(SystemExit, match="does not hold Pyodide"):
        build_site.main(["--live", "--pyodide", str(tmp_path), str(tmp_path / "site")])
    assert not (tmp_path / "site").exists()


@pytest.mark.slow
def test_numpy_keeps_what_it_imports(pyodide_folder):
    names = zipfile.ZipFile(io.BytesIO(live.numpy(pyodide_folder / live.wheel()))).namelist()
    assert any("_multiarray_tests" in name for name in names) and "numpy/testing/__init__.py" in names
    assert any(name.endswith(".dist-info/LICENSE.txt") for name in names)
    assert not any("/tests/" in name or name.startswith("numpy/f2py") for name in names)


# ---- in browsers -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site_folder(pyodide_folder, tmp_path_factory):
    """A site of one page."""
    folder = tmp_path_factory.mktemp("cells")
    site_of(TEXT, folder, pyodide_folder)
    return folder


@pytest.fixture(scope="module")
def address(site_folder):
    """The page's address on a server of this machine."""
    with served(site_folder) as server:
        yield f"{server.address}/cells.html"



@needs_browser
def test_the_search_of_a_page_with_cells(tmp_path):
    _, body = made()
    for name in ("page.js", "search.js", "site.css", "colours.css", "fonts.css"):
        (tmp_path / name).write_bytes((build_site.STATIC / name).read_bytes())
    entry = ["Fuse by hand", "lecture 9", "cells.html", "One kernel for five operations.", "Some more text.", ""]
    (tmp_path / "search-index.js").write_text(f"const INDEX = [{json.dumps(entry)}], SYNONYMS = [];")
    (tmp_path / "cells.html").write_text(page("cells", "Cells", body, kind="lecture"), encoding="utf-8")
    live.write(tmp_path, [])
    with served(tmp_path) as server, opened(url=f"{server.address}/cells.html", size=(1280, 900)) as shown:
        shown.locator(".try textarea").first.wait_for()
        shown.locator(".search input").fill("fuse")
        assert shown.locator("#found small").all_inner_texts() == ["One kernel for five operations."]
        assert shown.evaluate("['start', 'end', 'count', 'keys', 'Cell'].filter((name) => name in window)") == []


@needs_browser
def test_cells_are_edited_run_and_stopped(address):
    with opened(url=address, size=(1280, 900)) as shown:
        cells = Cells(shown)
        cells.write(1, "y = a * a * a\nmg.viz.step(y)")
        cells.run(1)  # which needs the cell above
        cells.wait(1, "Cell 1 above runs first")
        cells.wait(1, r"\d s$")
        assert cells.wait(0, r"\d s$") == "ready"
        view = shown.frame_locator(".try:nth-of-type(2) .said iframe").locator(".mg-view")
        view.locator("math").first.wait_for()  # formulas are set, not written as code
        assert re.match(r"\w.* steps", shown.locator(".try .said iframe").first.get_attribute("title"))
        view.locator("button", has_text="next").click()
        view.locator(".mg-say", has_text="y").wait_for()
        cells.write(2, "")
        area = shown.locator(".try textarea").nth(2)
        for key in ("def f(x):", "Enter", "return 1 / x", "Enter", "Tab", "Backspace", "Shift+Tab", "Enter", "f(0)"):
            area.press(key) if key[0].isupper() else area.press_sequentially(key)
        assert area.input_value() == "def f(x):\n    return 1 / x\n\nf(0)"
        area.press("Escape")
        assert shown.evaluate("document.activeElement.textContent") == "Run"
        shown.keyboard.press("Enter")
        said = cells.wait(2, "stopped")
        assert said.splitlines()[0] == "ZeroDivisionError: division by zero"
        assert "cell 3:4  f(0)" in said and "cell 3:2  return 1 / x" in said
        assert shown.locator(".at").nth(2).evaluate("mark => mark.style.getPropertyValue('--line')") == "1"
        marked = shown.locator(".at").nth(2).bounding_box()
        shown.mouse.click(marked["x"] + 40, marked["y"] + 10)
        assert area.evaluate("area => document.activeElement === area && area.selectionStart") in range(10, 24)
        cells.write(2, "f = None\nwhile True: pass")
        cells.run(2)
        cells.wait(2, "running")
        shown.locator(".try .go").nth(2).click()
        assert "Stopped." in cells.wait(2, "stopped")
        cells.write(2, "print(y.item(), f)")  # names are kept
        cells.run(2)
        assert cells.wait(2, r"\d s$") == "27.0 None"
        shown.locator(".tools button", has_text="Reset").nth(2).click()
        assert "return 1 / x" in shown.locator(".try textarea").nth(2).input_value()


@needs_browser
def test_a_link_carries_the_changed_code_and_runs_nothing(address):
    with opened(url=address, size=(1280, 900)) as shown:
        cells = Cells(shown)
        assert not shown.locator(".try button", has_text="Copy link").first.is_visible()
        cells.write(2, "print('a ∂ <b>')")
        shown.locator(".try button:visible", has_text="Copy link").click()
        cells.wait(2, "link")
        link = shown.evaluate("location.href")
        cells.run(0)
        cells.wait(0, "cell 1: .* s")
        assert "link" in shown.evaluate(STATUS.format(2))  # Python, which was loading, took no message's place
    assert link.startswith(f"{address}#code=") and re.fullmatch(r"[\w-]+", link.partition("=")[2])
    with opened(url=link, size=(1280, 900)) as shown:
        cells = Cells(shown)
        cells.wait(2, "came with the link")
        assert shown.locator(".try textarea").nth(2).input_value() == "print('a ∂ <b>')"
        assert "7" not in shown.locator(".try .said").nth(2).inner_text()  # nothing ran
        assert shown.locator(".try textarea").nth(0).input_value().startswith("a = mg")


@needs_browser
def test_a_damaged_link_is_named_and_spoils_nothing(address):
    with opened(url=f"{address}#code=e30!", size=(1280, 900)) as shown:
        Cells(shown).wait(0, "damaged")
        assert shown.locator(".try textarea").nth(0).input_value().startswith("a = mg")


@needs_browser
@pytest.mark.parametrize("size", [(390, 844), (844, 390)])
def test_fingers_have_large_buttons_and_text_into_which_no_phone_zooms(address, size):
    with opened(url=address, size=size, fingers=True) as shown:
        assert shown.locator(".try .go").first.bounding_box()["height"] >= 40
        assert shown.locator(".try textarea").first.evaluate("area => getComputedStyle(area).fontSize") == "16px"
        assert "Shift" not in shown.locator(".try .status").first.inner_text()
        view = shown.frame_locator(".try .said iframe").first
        assert view.locator("button", has_text="next").bounding_box()["height"] >= 40
        assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.fixture(scope="module")
def older(address, site_folder):
    """The address of the page as a browser without JSPI runs it."""
    script = (site_folder / "cells.js").read_text(encoding="utf-8")
    changed = script.replace('\\"Suspending\\" in WebAssembly', "false")
    assert changed != script
    (site_folder / "older.js").write_text(changed, encoding="utf-8")
    shown = (site_folder / "cells.html").read_text(encoding="utf-8")
    (site_folder / "older.html").write_text(shown.replace("cells.js", "older.js"), encoding="utf-8")
    return address.replace("cells.html", "older.html")


@needs_browser
def test_an_older_browser_ends_python_and_says_what_is_lost(older):
    with opened(url=older) as shown:
        cells = Cells(shown)
        cells.write(1, "while a: pass")
        cells.run(1)
        cells.wait(1, "running")
        shown.locator(".try .go").nth(1).click()
        cells.wait(1, r"^Python was stopped\. All names are lost: cell 1 must run again\.$")


@needs_browser
def test_a_server_that_isolates_pages_lets_older_browsers_keep_the_names(older):
    with opened(url=f"{older}?isolated") as shown:
        assert shown.evaluate("crossOriginIsolated")
        cells = Cells(shown)
        cells.write(0, "a = 0\nwhile True: a += 1")
        cells.run(0)
        cells.wait(0, "running")
        shown.locator(".try .go").nth(0).click()
        assert cells.wait(0, "stopped") == "Stopped."
        cells.write(0, "a > 1000")
        cells.run(0)
        assert cells.wait(0, r"\d s$") == "True"


@needs_browser
def test_cells_run_on_a_page_from_the_disk(site_folder):
    with opened(url=(site_folder / "cells.html").as_uri(), size=(390, 800)) as shown:
        cells = Cells(shown)
        shown.locator(".try textarea").nth(3).focus()
        cells.run(3)
        cells.wait(3, r"\d s$")
        assert shown.locator(".try .said").nth(3).locator("p > code").first.inner_text() == "mul_grad(g, out, a, b)"
        assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")


class InFirefox(Firefox):
    """The cells of a page in Firefox."""

    def show(self, url):
        self.ask("browsingContext.navigate", **self.page, url=url, wait="complete")

    def write_and_run(self, number, code):
        self.run(f"document.querySelectorAll('.try textarea')[{number}].focus() ?? 0")
        write = f"Object.assign(document.activeElement, {{ value: {json.dumps(code)} }})"
        self.run(f"{write}.dispatchEvent(new InputEvent('input'))")
        self.run(f"document.querySelectorAll('.try .go')[{number}].click() ?? 0")

    def press_stop(self, number):
        self.run(f"document.querySelectorAll('.try .go')[{number}].click() ?? 0")

    def wait(self, number, status):
        """Wait for the status of a cell, and return its output."""
        for _ in range(PATIENCE // 100):
            if re.search(status, self.run(STATUS.format(number))):
                return self.run(f"document.querySelectorAll('.try .said')[{number}].textContent").strip()
            time.sleep(0.1)
        raise AssertionError(self.run(STATUS.format(number)))


@needs_firefox
def test_in_firefox_cells_are_edited_run_and_stopped(address, site_folder, tmp_path):
    browser = InFirefox(tmp_path)
    try:
        browser.show(address)
        browser.write_and_run(1, "print(a.item() + 4)")
        assert browser.wait(1, r"\d s$") == "7.0"
        browser.write_and_run(2, "import time\ntime.sleep(1000)")  # it hears nothing
        browser.wait(2, "running")
        browser.press_stop(2)
        browser.wait(2, "all names are lost if you")
        browser.run("document.querySelector('.try .status button').click() ?? 0")
        browser.wait(2, r"stopped.*names are lost: cells 1, 2 must run again")
        browser.write_and_run(2, "while True: pass")  # and the cells above run again
        browser.wait(2, "running")
        browser.press_stop(2)
        browser.wait(2, "stopped")
        browser.show((site_folder / "cells.html").as_uri())
        browser.write_and_run(0, "print(1 + 2)")
        assert browser.wait(0, r"\d s$") == "3"
    finally:
        browser.close()
