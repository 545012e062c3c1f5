"""The site: made from the lectures alone, whole, true to the code that it quotes, and usable by keyboard."""

import hashlib
import re
import zipfile
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from lectures import build_site
from lectures.markup import Lecture, LectureError, as_page, as_slides
from minigrad.course.unit import units
from tests.course.running import ROOT
from tests.viz.browser import needs_browser, opened

# Of the files as npm's package has them, so that what is vendored is what was published.
VENDORED = {
    "LICENSE": "34014800f4126ac2",
    "dist/reset.css": "1aa8e84c9cabcbfe",
    "dist/reveal.css": "68f915a11ebf7203",
    "dist/reveal.js": "46538b52db487241",
    "plugin/notes/notes.js": "df1201d19d03241a",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build_site.build(folder)
    return folder


class Links(HTMLParser):
    """What a page refers to, what can be referred to in it, and what it takes from elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.parts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors += [attrs["id"]] if "id" in attrs else []
        if tag == "a" and "href" in attrs:
            self.links.append(attrs["href"])
        if tag != "a":
            found = [attrs[key] for key in ("src", "href", "data-src") if key in attrs]
            self.parts += [part for part in found if not part.startswith("#")]


def pages(site):
    return sorted(path for path in site.rglob("*.html") if path.parent.name != "live")


def test_every_unit_has_its_page_and_slides(site):
    for key, unit in units().items():
        text = (site / f"{key}.html").read_text(encoding="utf-8")
        assert f"{unit.number:02} · {unit.title}</h1>" in text and "After this unit you can" in text
        assert (site / f"{key}.slides.html").read_text(encoding="utf-8").count("<section>") >= 5
    index = (site / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{key}.html"' in index for key in units())


def test_every_link_leads_somewhere(site):
    broken = []
    known = {path: Links(path.read_text(encoding="utf-8")) for path in pages(site)}
    for path, seen in known.items():
        for link in seen.links + seen.parts:
            name, _, anchor = unquote(link).partition("#")
            if name.startswith(("https://", "data:")) and link in seen.links:
                continue
            target = path.parent / name if name else path
            there = target.is_file()
            if anchor and there:
                there = anchor in known[target].anchors
            broken += [] if there else [f"{path.name}: {link}"]
    assert broken == []


def test_nothing_is_fetched_from_elsewhere(site):
    for path in pages(site):
        parts = Links(path.read_text(encoding="utf-8")).parts
        assert not [part for part in parts if "//" in part], path.name
    for path in [*site.glob("*.css"), *site.glob("*.js")]:
        assert "http" not in path.read_text(encoding="utf-8")


def test_links_in_the_repositorys_texts_lead_somewhere():
    texts = [*ROOT.glob("*.md"), *(ROOT / "lectures").glob("*.md"), *(ROOT / "notebooks").glob("*.md")]
    for path in texts:
        for link in re.findall(r"\]\(([^)#\s]+)\)", path.read_text(encoding="utf-8")):
            assert link.startswith("https://") or (path.parent / link).exists(), f"{path.name}: {link}"


def test_slides_have_notes_and_pages_have_none(site):
    for key in units():
        assert '<aside class="notes">' in (site / f"{key}.slides.html").read_text(encoding="utf-8")
        assert "notes" not in (site / f"{key}.html").read_text(encoding="utf-8")


def test_the_api_page_has_every_room(site):
    text = (site / "api.html").read_text(encoding="utf-8")
    for name in ("mg.matmul", "Tensor.backward", "mg.jit", "mg.nn.Linear", "mg.optim.Adam", "mg.viz.step"):
        assert f"<code>{name}</code>" in text


def test_it_is_made_the_same_again(site, tmp_path):
    build_site.build(tmp_path)
    for path in pages(site):
        assert path.read_bytes() == (tmp_path / path.relative_to(site)).read_bytes(), path.name


def test_what_is_vendored_is_what_was_published():
    with zipfile.ZipFile(build_site.REVEAL) as archive:
        assert {name: hashlib.sha256(archive.read(name)).hexdigest()[:16] for name in archive.namelist()} == VENDORED


def test_licences_are_said():
    notices = (ROOT / "lectures" / "licences.md").read_text(encoding="utf-8")
    for words in ("MIT", "Creative Commons Attribution 4.0", build_site.REVEAL.stem.replace("-", " ")):
        assert words in notices
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert "CC-BY-4.0" in citation and "MIT" in citation


# ---- the Markdown of lectures ----------------------------------------------------------------------------------------


def html(text, form=as_page):
    return form(Lecture("test", text))


def test_a_quoted_line_is_a_line_of_the_file():
    good = "```python minigrad/autodiff/reverse.py\nfor node in reversed(order):\n...\n    yield _contribution\n```"
    with pytest.raises(LectureError, match=r"that is not in minigrad/autodiff/reverse\.py:\n      yield"):
        html(good)
    assert "figcaption" in html(good.replace("    yield _contribution\n", "return found\n"))
    with pytest.raises(LectureError, match="not in that order in"):
        html("```python minigrad/autodiff/reverse.py\nreturn found\npending: dict[Node, Any] = {}\n```")
    with pytest.raises(LectureError, match="which is no file"):
        html("```python minigrad/nowhere.py\nx\n```")


def test_code_is_run_once_and_shares_its_names():
    text = "```run\nprint('made')\nx = 3\n```\n\n```run\nx = x + 1\nx\n```"
    lecture = Lecture("test", text)
    page, slides = as_page(lecture), as_slides(lecture)
    assert '<pre class="output">made\n</pre>' in page and '<pre class="output">4\n</pre>' in page
    assert '<pre class="output">4\n</pre>' in slides
    with pytest.raises(LectureError, match=r"test\.md, code 1 fails: ZeroDivisionError"):
        html("```run\n1 / 0\n```")


def test_pictures_and_views_are_made_by_minigrad():
    code = "x = mg.asarray(2.0, requires_grad=True)\ny = x * x\n"
    assert "<svg" in html(f"```picture\n{code}mg.viz.graph(y)\n```")
    lecture = Lecture("test", f"```live\n{code}mg.viz.step(y)\n```")
    assert '<iframe class="live" src="live/test-1.html"' in as_page(lecture)
    assert "<!doctype html>" in lecture.live["test-1.html"]


def test_formulas_are_mathml_and_html_is_text():
    assert html("$x^2$").startswith('<p><math xmlns="http://www.w3.org/1998/Math/MathML" display="inline">')
    assert 'display="block"' in html("$$\\frac{1}{2}$$")
    assert "&lt;script&gt;" in html("<script>alert(1)</script>")


def test_what_belongs_to_one_form_is_not_in_the_other():
    boxes = {"page": "for readers", "slide": "for listeners", "notes": "for the speaker"}
    inside = "".join(f"::: {kind}\n{words}\n:::\n\n" for kind, words in boxes.items())
    text = f"# T\n\n{inside}## Two\n\n---\n\nend"
    page, slides = html(text), html(text, as_slides)
    assert "for readers" in page and "for listeners" not in page and "for the speaker" not in page
    assert "for readers" not in slides and "for listeners" in slides and '<aside class="notes">\n<p>for the' in slides
    assert slides.count("<section>") == 3 and "<hr" not in page


def test_an_answer_is_shown_after_a_click():
    shown = html("::: reveal What is *x*?\n3\n:::")
    assert '<details class="reveal"><summary>What is <em>x</em>?</summary>' in shown and "open" not in shown


def test_the_lecture_prints_no_answer_of_the_exercise_in_the_open(site):
    """What a task asks for stands in a lecture only behind a click."""
    for key in units():
        text = (ROOT / "lectures" / f"{key}.md").read_text(encoding="utf-8")
        outside = re.sub(r"(?ms)^::: (reveal|notes).*?^:::$", "", text)
        for task in units()[key].tasks.values():
            assert f"def {task.name}(" not in outside and f"{task.name} =" not in outside


# ---- in a browser ----------------------------------------------------------------------------------------------------


@needs_browser
def test_slides_by_keyboard_with_a_live_view_inside(site):
    with opened(url=(site / "00_start.slides.html").as_uri(), size=(1280, 720)) as page:
        page.wait_for_selector("body[data-ready]")
        page.keyboard.press("ArrowRight")
        page.wait_for_function("Reveal.getIndices().h === 1")
        assert not page.evaluate("Reveal.getCurrentSlide().querySelector('details').open")
        page.keyboard.press("r")
        page.wait_for_function("Reveal.getCurrentSlide().querySelector('details').open")
        while not page.evaluate("!!Reveal.getCurrentSlide().querySelector('iframe.live')"):
            page.keyboard.press("ArrowRight")
        at = page.evaluate("Reveal.getIndices().h")
        frame = page.frame_locator("section.present iframe.live")
        frame.locator(".mg-view").wait_for()
        page.keyboard.press("e")
        frame.locator(".mg-view:focus").wait_for()
        before = frame.locator(".mg-view").get_attribute("data-step")
        page.keyboard.press("ArrowRight")
        frame.locator(f".mg-view:not([data-step='{before}'])").wait_for()
        assert page.evaluate("Reveal.getIndices().h") == at
        page.keyboard.press("Escape")
        page.wait_for_function("document.activeElement === document.body")
        page.keyboard.press("ArrowRight")
        page.wait_for_function(f"Reveal.getIndices().h === {at + 1}")


@needs_browser
def test_a_page_fits_a_phone(site):
    for name in ("00_start.html", "primitives.html", "00_start.slides.html"):
        with opened(url=(site / name).as_uri(), size=(390, 800)) as page:
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
