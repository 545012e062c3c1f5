"""The site: made from the lectures alone, whole, true to the code that it quotes, and usable by keyboard."""

import hashlib
import json
import re
import zipfile
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

import minigrad as mg
from lectures.site import api, build_site, overview
from lectures.site.cells import notebook_page, notebooks, page_of
from lectures.site.frames import texts
from lectures.site.hosts import Hosts
from lectures.site.markup import Lecture, LectureError, as_page, as_slides
from minigrad_course.unit import units
from tests.course.running import ROOT
from tests.viz.browser import needs_browser, opened

# Of the files as npm's packages have them, so that what is vendored is what was published.
VENDORED = {
    "reveal.js-5.2.1.zip": {
        "LICENSE": "34014800f4126ac2",
        "dist/reset.css": "1aa8e84c9cabcbfe",
        "dist/reveal.css": "68f915a11ebf7203",
        "dist/reveal.js": "46538b52db487241",
        "plugin/notes/notes.js": "df1201d19d03241a",
    },
    "source-code-pro-5.3.0.zip": {
        "LICENSE": "18aabf190848725e",
        "source-code-pro-latin-wght-normal.woff2": "8b774aaa5137a38e",
    },
    "source-sans-3-5.3.0.zip": {
        "LICENSE": "18aabf190848725e",
        "source-sans-3-latin-wght-normal.woff2": "7a19a7027e125257",
        "source-sans-3-latin-wght-italic.woff2": "9a15dafc2c2b2414",
    },
    "stix-two-math-5.3.0.zip": {
        "LICENSE": "0c8b99c034064cbb",
        "stix-two-math-latin-400-normal.woff2": "8b2a6834cfe1f4e0",
    },
}


class Pictures(HTMLParser):
    """The pictures, images and frames of a page that have no words for readers who do not see them."""

    def __init__(self, text):
        super().__init__()
        self.silent, self.waiting = [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if self.waiting is not None and tag != "title":
            self.silent.append(self.waiting)
        self.waiting = None
        words = {"img": "alt", "iframe": "title"}.get(tag)
        if words and not attrs.get(words, "").strip():
            self.silent.append(self.get_starttag_text())
        if tag == "svg" and not attrs.get("aria-label"):
            self.waiting = self.get_starttag_text()


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
        assert (site / f"{key}.slides.html").read_text(encoding="utf-8").count("<section") >= 5
    index = (site / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{key}.html"' in index for key in units())


def test_without_live_cells_the_site_has_nothing_of_them(site):
    assert not (site / "cells.js").exists() and not (site / "python").exists()
    assert not any("cells.js" in path.read_text(encoding="utf-8") for path in pages(site))


@pytest.mark.slow
def test_every_link_leads_somewhere(site):
    broken = []
    known = {path: Links(path.read_text(encoding="utf-8")) for path in pages(site)}
    for path, seen in known.items():
        for link in seen.links + seen.parts:
            name, _, anchor = unquote(link).partition("#")
            if name.startswith(("https://", "http://", "data:")) and link in seen.links:
                continue
            if anchor.startswith("/") and path.name.endswith(".slides.html"):
                continue  # the number of a slide
            target = path.parent / name.partition("?")[0] if name else path
            there = target.is_file()
            if anchor and there:
                there = anchor in known[target].anchors
            broken += [] if there else [f"{path.name}: {link}"]
    assert broken == []


@pytest.mark.slow
def test_links_to_other_places_end_as_addresses_do_and_pages_have_one_title(site):
    for path in pages(site):
        text = path.read_text(encoding="utf-8")
        ends = [link for link in Links(text).links if link.startswith("http") and link[-1] in ".,;:"]
        assert not ends and text.count("<h1") == 1, path.name


def test_scripts_and_styles_are_addressed_by_their_content(site):
    for name in ("index.html", "06_reverse_mode.slides.html"):
        parts = [part for part in Links((site / name).read_text(encoding="utf-8")).parts if "/" not in part]
        assert len(parts) >= 3
        for part in parts:
            file, _, digest = part.partition("?")
            assert hashlib.sha256((site / file).read_bytes()).hexdigest().startswith(digest) and len(digest) == 8


@pytest.mark.slow
def test_an_id_is_given_once(site):
    for path in pages(site):
        ids = Links(path.read_text(encoding="utf-8")).anchors
        assert [name for name in set(ids) if ids.count(name) > 1] == [], path.name


@pytest.mark.slow
def test_search_results_lead_to_existing_places(site):
    script = (site / "search-index.js").read_text(encoding="utf-8")
    lines = json.loads(script.partition("=")[2].partition("\nconst")[0].strip().removesuffix(";"))
    kinds = {"lecture", "demo", "exercise", "API", "primitive", "error", "glossary", "elsewhere", "idea", "room"}
    kinds |= {name.partition("_")[0] for name in texts()} - {"licences", "howto"} | {"how-to"}
    assert {kind.partition(" ")[0] for _, kind, *_ in lines} == kinds
    known = {path.name: Links(path.read_text(encoding="utf-8")).anchors for path in pages(site)}
    for name, _, address, *_ in lines:
        page, _, anchor = address.partition("#")
        assert page in known and (not anchor or anchor in known[page]), name


def test_the_search_has_every_section_and_word(site):
    script = (site / "search-index.js").read_text(encoding="utf-8")
    lines = json.loads(script.partition("=")[2].partition("\nconst")[0].strip().removesuffix(";"))
    known = {address for _, _, address, *_ in lines}
    for name in [*units(), *({*texts()} - {"licences", "howto"}), "rooms", "errors", "coverage"]:
        text = (site / f"{name}.html").read_text(encoding="utf-8")
        parts = "tr" if name in ("glossary", "coverage") else "h[23]"
        anchors = {*re.findall(rf'<{parts} id="([^"]+)"', text)} - {"after-this-unit"}
        assert anchors and {f"{name}.html#{anchor}" for anchor in anchors} <= known, name
    for key, kind in notebooks():
        assert sum(address.startswith(f"{page_of(key, kind)}#") for address in known) >= 3, key


@pytest.mark.slow
def test_pages_fetch_nothing_from_elsewhere(site):
    for path in pages(site):
        parts = Links(path.read_text(encoding="utf-8")).parts
        assert not [part for part in parts if "//" in part], path.name
    for path in {*site.glob("*.css"), *site.glob("*.js")} - {site / "search-index.js"}:  # which holds only texts
        assert "http" not in path.read_text(encoding="utf-8")


def test_links_in_the_repositorys_texts_lead_somewhere():
    # The links of the other texts in `lectures` are those of the site.
    for path in [*ROOT.glob("*.md"), ROOT / "lectures" / "README.md", *(ROOT / "notebooks").glob("*.md")]:
        for link in re.findall(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)\)", path.read_text(encoding="utf-8")):
            assert link.startswith("https://") or (path.parent / link).exists(), f"{path.name}: {link}"


@pytest.mark.slow
def test_every_picture_and_view_has_words(site):
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert Pictures(text).silent == [], path.name
        assert "<title></title>" not in text, path.name


def test_a_picture_without_words_is_found():
    silent = Pictures('<svg><path d=""/></svg><img src="a.png"><iframe src="b"></iframe><svg><title>c</title></svg>')
    assert silent.silent == ["<svg>", '<img src="a.png">', '<iframe src="b">']


@pytest.mark.parametrize("key", [key for key in units() if key < "08"])
def test_a_page_has_at_most_2000_words(site, key):
    """Prose, answers and code, but not the words in pictures."""
    text = (site / f"{key}.html").read_text(encoding="utf-8")
    body = text[text.index("<main") : text.index("</main>")]
    prose = re.sub(r"<(svg|style|script|figure)\b.*?</\1>", " ", body, flags=re.DOTALL)
    assert len(re.sub(r"<[^>]+>", " ", prose).split()) <= 2000


def test_slides_have_notes_and_pages_have_none(site):
    for key in units():
        assert '<aside class="notes">' in (site / f"{key}.slides.html").read_text(encoding="utf-8")
        assert "notes" not in (site / f"{key}.html").read_text(encoding="utf-8")


def test_the_api_page_has_every_room(site):
    text = (site / "api.html").read_text(encoding="utf-8")
    for name in ("mg.matmul", "Tensor.backward", "mg.jit", "mg.nn.Linear", "Module.state_dict", "mg.optim.Adam",
                 "mg.optim.lr_scheduler.StepLR", "mg.train.fit", "mg.io.save_file", "mg.viz.step"):
        assert f'<h3 id="{name}">' in text
    assert "object object" not in text  # a default that cannot be written
    script = (site / "search-index.js").read_text(encoding="utf-8")
    assert not re.search(r":[a-z]+:`", text + script + (site / "primitives.html").read_text(encoding="utf-8"))  # reST


def test_units_link_to_their_notebooks_in_the_browser_when_these_have_an_address():
    unit, hosts = units()["00_start"], Hosts("https://here/browser", "me/minigrad@spring")
    demo = 'href="https://here/browser/notebooks/index.html?path=00_start.ipynb"'
    assert demo in overview.opening(unit, unit.key, hosts)
    about = overview.about(unit, hosts)
    assert demo in about and "index.html?path=exercises/00_start_exercise.ipynb" in about
    first = overview.index({}, '<h2 id="start">start<hr />\nlive<hr />\nrest', "", hosts)
    assert first.index('href="https://here/browser/">Open the notebooks') < first.index('<h2 id="start">')
    assert "browser" not in overview.opening(unit, unit.key) + overview.about(unit)


def test_pages_of_notebooks_have_a_button_for_each_host():
    tasks = units()["00_start"].tasks
    _, body, _ = notebook_page("00_start", "exercise", tasks, Hosts("browser", "me/minigrad@spring"))
    path = "notebooks/exercises/00_start_exercise.ipynb"
    for address in (f"https://colab.research.google.com/github/me/minigrad/blob/spring/{path}",
                    f"https://mybinder.org/v2/gh/me/minigrad/spring?urlpath=lab/tree/{path}",
                    "browser/notebooks/index.html?path=exercises/00_start_exercise.ipynb"):
        assert f'<a class="button" href="{address}">' in body
    assert "pip install -q git+https://github.com/me/minigrad@spring " in body
    _, body, _ = notebook_page("00_start", "exercise", tasks)
    assert "colab" not in body.lower() and "binder" not in body.lower()


@pytest.mark.slow
def test_site_is_built_the_same_twice(site, tmp_path):
    build_site.build(tmp_path)
    for path in pages(site):
        assert path.read_bytes() == (tmp_path / path.relative_to(site)).read_bytes(), path.name


def test_vendored_files_are_those_published():
    found = {}
    for path in build_site.VENDOR.glob("*.zip"):
        with zipfile.ZipFile(path) as archive:
            digests = {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}
            found[path.name] = {name: digest[:16] for name, digest in digests.items()}
    assert found == VENDORED


def test_licences_name_every_vendored_package():
    notices = (ROOT / "lectures" / "licences.md").read_text(encoding="utf-8")
    assert "MIT" in notices and "Creative Commons Attribution 4.0" in notices and "SIL Open Font License 1.1" in notices
    for path in build_site.VENDOR.glob("*.zip"):
        name, _, version = path.stem.rpartition("-")
        assert f"{name.replace('-', ' ')} {version}".lower() in notices.lower()
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert "CC-BY-4.0" in citation and "MIT" in citation


# ---- the Markdown of lectures ----------------------------------------------------------------------------------------


def html(text, form=as_page):
    return form(Lecture("test", text))


def quote(*lines, name="minigrad/autodiff/reverse.py"):
    return html("\n".join([f"```python {name}", *lines, "```"]))


def test_a_quote_is_in_the_file_in_one_piece_but_for_its_dots():
    begin = "for node in reversed(hooked(order)):"
    assert "figcaption" in quote(begin, "    if node not in pending:", "...", "return found")
    with pytest.raises(LectureError, match=r"not in minigrad/autodiff/reverse\.py\n  yield Contribution$"):
        quote(begin, "...", "    yield Contribution")
    with pytest.raises(LectureError, match=r"  continue\nThe file has this line, but lines before it are left out"):
        quote(begin, "        continue")
    with pytest.raises(LectureError, match="The file has this line, but it is in a different order"):
        quote("return found", "...", "pending: dict[Node, Any] = {}")
    with pytest.raises(LectureError, match="which is not a file"):
        quote("x", name="minigrad/nowhere.py")


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
    assert '<div class="live"><iframe src="live/test-1.html"' in as_page(lecture)
    assert "<!doctype html>" in lecture.live["test-1.html"]


def test_formulas_are_mathml_and_html_is_text():
    assert html("$x^2$").startswith("<p><math")
    assert 'display="block"' in html("$$\\frac{1}{2}$$")
    assert "&lt;script&gt;" in html("<script>alert(1)</script>")


def test_names_of_functions_in_formulas_are_upright_and_spaced_as_in_tex():
    assert ">atan2</mi><mo" in html(r"$\operatorname{atan2}(x, y)$")
    assert '<mi>ln</mi><mspace width="0.167em" /><mi>x</mi>' in html(r"$\ln x$")
    assert ">max</mi><mo" in html(r"$\max(x, y)$")
    assert '</msup><mspace width="0.167em" /><mi>x</mi>' in html(r"$1 - \tanh^2 x$")


def test_code_has_colours_and_stays_what_it_is():
    made = html("```python\nfor x in 'a<b':\n    pass\n```")
    assert '<span class="k">for</span>' in made
    assert unescape(re.sub("<[^>]*>", "", made)) == "for x in 'a<b':\n    pass\n\n"


def test_a_slide_without_a_heading_goes_on_with_the_one_before():
    made = html("# T\n\none\n\n## *Two*\n\n---\n\nend", as_slides)
    assert made.count("goes-on") == 1 and '<p class="goes-on"><em>Two</em></p>\n<p>end</p>' in made


def test_blocks_for_pages_and_slides_are_kept_apart():
    boxes = {"page": "for readers", "slide": "for listeners", "notes": "for the speaker"}
    inside = "".join(f"::: {kind}\n{words}\n:::\n\n" for kind, words in boxes.items())
    text = f"# T\n\n{inside}## Two\n\n---\n\nend"
    page, slides = html(text), html(text, as_slides)
    assert "for readers" in page and "for listeners" not in page and "for the speaker" not in page
    assert "for readers" not in slides and "for listeners" in slides and '<aside class="notes">\n<p>for the' in slides
    assert slides.count("<section") == 3 and "<hr" not in page


def test_an_empty_corner_of_a_table_is_a_plain_cell():
    made = html("| | a |\n|---|---|\n| b | c |")
    assert "<td></td>\n<th>a</th>" in made and made.count("<th>") == 1 and made.count("<td>") == 3


def test_an_answer_is_shown_after_a_click():
    shown = html("::: reveal What is *x*?\n3\n:::")
    assert '<details class="answer"><summary>What is <em>x</em>?</summary>' in shown and "open" not in shown


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
        assert page.evaluate("document.elementFromPoint(640, 300).closest('section.present') !== null")  # it is seen
        answer = "Reveal.getCurrentSlide().querySelector('details').open"
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.wait_for_function("Reveal.getIndices().h === 2")
        assert not page.evaluate(answer)
        page.keyboard.press("ArrowRight")  # shows the answer before it goes on
        page.wait_for_function(answer)
        assert page.evaluate("Reveal.getIndices().h") == 2
        page.keyboard.press("r")
        page.wait_for_function(f"!{answer}")
        page.keyboard.press("r")
        page.wait_for_function(answer)
        while not page.evaluate("!!Reveal.getCurrentSlide().querySelector('.live iframe')"):
            page.keyboard.press("ArrowRight")
        at = page.evaluate("Reveal.getIndices().h")
        frame = page.frame_locator("section.present .live iframe")
        frame.locator("body.fill .mg-view").wait_for()
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
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("e")
        frame.locator(".mg-view:focus").wait_for()
        page.keyboard.press("PageDown")  # of a presenter's remote
        page.wait_for_function(f"Reveal.getIndices().h === {at + 1}")


@needs_browser
def test_a_page_fits_a_phone_and_gives_no_answer_away(site):
    for name in ("index", "00_start", "06_reverse_mode", "errors", "primitives", "coverage", "06_reverse_mode.slides"):
        path = site / f"{name}.html"
        with opened(url=path.as_uri(), size=(390, 800)) as page:
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path.name
            if ".slides" in path.name:
                page.wait_for_selector("body[data-ready]")
            assert page.locator("details.answer[open]").count() == 0


@needs_browser
def test_a_view_in_a_page_is_as_high_as_it_needs_to_be(site):
    for size in ((1280, 900), (390, 800)):
        with opened(url=(site / "06_reverse_mode.html").as_uri(), size=size) as page:
            page.locator(".live").scroll_into_view_if_needed()
            view = page.frame_locator(".live iframe").locator(".mg-view")
            view.locator(".mg-say", has_text="y").wait_for()
            height = view.evaluate("view => view.offsetHeight")
            page.wait_for_function(f"Math.abs(document.querySelector('.live iframe').offsetHeight - {height}) < 3")
            shown = view.locator(".mg-canvas").evaluate("canvas => canvas.offsetHeight")
            assert shown > 300, "the picture, and not only what is said of it"


@needs_browser
def test_pages_by_keyboard(site):
    with opened(url=(site / "index.html").as_uri(), size=(1280, 900)) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"
        page.keyboard.press("/")
        page.keyboard.type("cross_ent")
        page.locator("#found [aria-selected=true] >> text=mg.cross_entropy").wait_for()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        page.wait_for_url("**/api.html#mg.cross_entropy")
        assert page.locator("h3:target").inner_text() == "mg.cross_entropy" + api.signature(mg.cross_entropy)


@needs_browser
@pytest.mark.parametrize(
    ("asked", "name", "said"),
    [
        ("learning rate", "learning rate", "How far a step of the optimizer goes"),
        ("step size", "learning rate", "How far"),
        ("How do I call backward twice?", "And then freed", "Which chain can go backward twice?"),
        ("retain_graph", "GradError", "retain_graph=True for a second backward"),
        ("added first and passed on once", "Why backward", ""),
        ("every value the same question", "Backward", "To find it, we ask every value the same question"),
        ("backpropagation", "Reverse mode: one walk back", ""),
        ("walking two paths", "Add first, multiply once", "Walking two paths one after the other costs four"),
        ("zebras", "", "Nothing found"),
    ],
)
def test_the_search_finds_sentences_and_synonyms(site, asked, name, said):
    with opened(url=(site / "index.html").as_uri(), size=(1280, 900)) as page:
        page.keyboard.press("/")
        page.keyboard.type(asked)
        found = page.locator("#found li", has_text=name).filter(has_text=said)
        found.first.wait_for()
        assert found.count() >= 1 and ":math:" not in page.locator("#found").inner_text()


@needs_browser
def test_an_answer_is_found_but_not_shown_by_the_search(site):
    with opened(url=(site / "index.html").as_uri(), size=(1280, 900)) as page:
        page.keyboard.press("/")
        page.keyboard.type("ten times as much as x")
        line = page.locator("#found li", has_text="The question")
        line.first.wait_for()
        assert "ten times" not in line.first.inner_text()


@needs_browser
def test_without_scripts_the_text_is_there(site):
    with opened(url=(site / "06_reverse_mode.html").as_uri(), scripts=False) as page:
        page.locator("details.answer summary").first.click()
        assert page.locator("details.answer[open] pre").first.is_visible()
        assert not page.locator(".search").is_visible()
    with opened(url=(site / "06_reverse_mode.slides.html").as_uri(), scripts=False) as page:
        assert "the page (left) has the same text" in page.locator("footer").inner_text()
