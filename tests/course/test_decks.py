"""Decks are made of pictures: few words, one scale of type, readable code, no answer in sight of its question."""

import re
from html import unescape
from html.parser import HTMLParser

import pytest

from lectures.site.build_site import STATIC
from lectures.site.drawn import Sketch
from lectures.site.frames import deck
from lectures.site.markup import Lecture, LectureError, as_page, as_slides, chosen, parsed, parser
from minigrad.viz.colours import COLOURS
from minigrad_course.unit import units
from tests.course.running import ROOT
from tests.viz.browser import needs_browser, opened, settled

SIZES = ((1600, 900), (1280, 720), (1280, 800))  # of windows and projectors
LISTINGS, LINES, PLAIN = 3, 14, 6  # slides with code in a deck, lines on one of them, lines that need no mark
WORDS = 25  # on a slide without its code, with all answers shown
LABEL = 6  # words in a label of a picture
SCALE = {200, 92, 54, 38, 32, 30, 24}  # sizes of type on a slide of 1600 × 900
KEYS = sorted(units())


class Text(HTMLParser):
    """The words of a slide that are neither code nor in a picture, and apart from them the labels of its pictures."""

    LEFT_OUT = ("pre", "code", "svg", "math", "aside", "iframe")

    def __init__(self, html):
        super().__init__()
        self.inside, self.words, self.labels = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag in self.LEFT_OUT or tag == "text":
            self.inside.append(tag)

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data):
        if self.inside and self.inside[-1] == "text":
            self.labels.append(data)
        elif not self.inside:
            self.words += re.findall(r"\w[\w'’]*", data)


def slides_of(site, key):
    text = (site / f"{key}.slides.html").read_text(encoding="utf-8")
    return re.findall(r"(?s)<section.*?</section>", text)


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_a_slide_has_few_words_and_something_to_see(site, key):
    for number, slide in enumerate(slides_of(site, key), start=1):
        text = Text(slide)
        assert len(text.words) <= WORDS, f"{key}, slide {number}: {' '.join(text.words)}"
        assert any(f"<{tag}" in slide for tag in ("svg", "iframe", "pre")), f"{key}, slide {number} shows nothing"
        long = [label for label in text.labels if len(re.findall(r"[^\W\d_]{2,}", label)) > LABEL]
        assert not long, f"{key}, slide {number}: {long}"


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_a_deck_begins_with_its_title_and_ends_with_a_recap(site, key):
    slides = slides_of(site, key)
    assert '<section class="title">' in slides[0] and "<svg" in slides[0]
    footer = re.findall(r'data-first="(\d+)">(.*?)<', (site / f"{key}.slides.html").read_text(encoding="utf-8"))
    firsts, names = [int(first) for first, _ in footer], [unescape(name) for _, name in footer]
    assert names[-1] == "Recap" and 3 <= len(names) <= 8 and firsts == sorted(set(firsts))
    assert all(len(name.split()) <= 3 for name in names)
    recap = slides[firsts[-1]]
    assert '<div class="row">' in recap and recap.count("<figcaption>") >= 3


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("form", ["page", "slide"])
def test_nothing_stands_below_a_question_that_depends_on_its_answer(key, form):
    """After a question that is answered by a click, only other questions come until the next heading."""
    lecture = Lecture(key, (ROOT / "lectures" / f"{key}.md").read_text(encoding="utf-8"))
    depth, asked = 0, ""
    for token in parsed(parser(lecture), lecture, form):
        if token.type in ("container_notes_open", "container_reveal_open"):
            depth += 1
            asked = token.info if token.type == "container_reveal_open" and depth == 1 else asked
        elif token.type in ("container_notes_close", "container_reveal_close"):
            depth -= 1
        elif not depth:
            asked = "" if token.type == "heading_open" or (token.type == "hr" and form == "slide") else asked
            assert not asked or token.type == "hr", f"{key}: {token.content or token.type} stands below '{asked}'"


def code_of(slide):
    """The lines of code on a slide."""
    listings = re.findall(r'(?s)<pre class="code">(.*?)</pre>', slide)
    return [line for listing in listings for line in re.sub("<[^>]*>", "", listing).strip("\n").split("\n")]


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_a_deck_has_little_code_and_marks_the_lines_that_matter(site, key):
    listings = [(len(code), slide) for slide in slides_of(site, key) if (code := code_of(slide))]
    assert len(listings) <= LISTINGS and max((lines for lines, _ in listings), default=0) <= LINES
    assert [slide for lines, slide in listings if lines > PLAIN and "hll" not in slide] == []


def test_the_style_sheet_has_all_colours_of_pictures_in_both_themes():
    styles = (STATIC / "colours.css").read_text(encoding="utf-8")
    missing = {name for name in COLOURS if len(re.findall(rf"--{name}: #", styles)) != 3}  # light, and dark by two ways
    assert not missing


# ---- the Markdown ----------------------------------------------------------------------------------------------------


def html(text, form=as_slides, name="06_reverse_mode"):
    return form(Lecture(name, text))


def test_a_picture_is_a_function_of_the_units_pictures():
    one = html("# T\n\n![a row of values](serials)", as_page)
    assert one.count('<figure class="drawn">') == 1 and "<title>a row of values</title>" in one
    with pytest.raises(LectureError, match=r"shows the picture 'nowhere', which is not in lectures\.pictures\.u06"):
        html("![a](nowhere)")
    with pytest.raises(LectureError, match=r"lectures/pictures/unknown\.py is missing"):
        html("![a](b)", name="unknown")


def test_the_stages_of_a_picture_follow_each_other_on_slides():
    made = html("![the walk](walk)")
    assert made.count("<svg") == 4 and made.count('<div class="fragment">') == 3
    assert "fragment" not in html("![the walk](walk)", as_page)


def test_several_pictures_stand_in_a_row_with_captions():
    made = html("![first one](keep)\n![second one](lost)")
    assert made.count('<div class="row">') == 1
    assert re.findall("<figcaption>(.*?)</figcaption>", made) == ["first one", "second one"]


def test_pictures_take_the_colours_of_the_page_and_escape_their_words():
    made = html("![a < b](keep)")
    assert "var(--back)" in made and "a &lt; b" in made
    assert not re.search(r'(fill|stroke)="#', made)


def test_a_chapter_whose_first_slide_has_another_heading_has_no_slide_of_its_own():
    lecture = Lecture("test", "# T\n\nx\n\n## One\n\n### A\n\na\n\n### B\n\nb\n\n## Two\n\nc")
    assert as_slides(lecture).count("<section") == 4
    assert lecture.chapters == [("One", 1), ("Two", 3)]
    assert 'data-first="3"' in deck("test", "T", "", lecture.chapters)


def test_the_title_slide_is_made_of_the_title():
    made = html("# 07 · Forward mode: and memory")
    parts = re.findall(r'<span class="(\w+)">(.*?)</span>', made)
    assert parts == [("number", "07"), ("name", "Forward mode"), ("more", "and memory")]


def test_a_function_is_quoted_by_its_name():
    quote = "```python minigrad/core/node.py topological_order\n```"
    page, slides = (unescape(re.sub("<[^>]*>", "", html(quote, form))) for form in (as_page, as_slides))
    assert "return sorted(found" in page and '"""' in page
    assert "return sorted(found" in slides and '"""' not in slides
    assert "def copy_from" not in page
    method = html("```python minigrad/optim/optimizer.py Optimizer.step\n```", as_page)
    assert unescape(re.sub("<[^>]*>", "", method)).startswith("def step(self")
    with pytest.raises(LectureError, match=r"quotes nothing_here, which is not in minigrad/core/node\.py"):
        html("```python minigrad/core/node.py nothing_here\n```")
    with pytest.raises(LectureError, match="which is not a file"):
        html("```python minigrad/nowhere.py f\n```")


def marked(text, form=as_slides):
    """The lines that are marked, without their colours."""
    found = re.findall(r'(?s)<span class="hll">(.*?\n)</span>', html(f"# T\n\n## A\n\n{text}\n```", form))
    return [unescape(re.sub("<[^>]*>", "", line)).strip() for line in found]


def test_a_line_that_matters_is_marked():
    assert marked("```python\na = 1\n▸ b = a\n▸ c = b") == ["b = a", "c = b"]
    assert marked("```c\nint a = 1;\n▸ int b = a;") == ["int b = a;"]
    assert html("```text\nx\n▸ x\n```").index("x\n") < html("```text\nx\n▸ x\n```").index("hll")
    made = html("```run\na = 1\n▸ print(a + 1)\n```")
    assert '<pre class="output">2' in made and "▸" not in made


def test_lines_of_a_function_that_is_quoted_whole_are_marked_by_their_text():
    quote = "```python minigrad/core/node.py topological_order\n▸ return sorted(found, key=_serial)"
    assert marked(quote) == marked(quote, as_page) == ["return sorted(found, key=_serial)"]
    assert "found.add(node)" in unescape(re.sub("<[^>]*>", "", html(f"{quote}\n```")))
    with pytest.raises(LectureError, match=r"a line is marked that is not in the code.*\n  return unsorted"):
        marked("```python minigrad/core/node.py topological_order\n▸ return unsorted")


def test_an_excerpt_of_a_function_shows_its_lines_only():
    first = "```python minigrad/core/node.py topological_order"
    quote = f"{first}\nfound = set(roots)\n...\n▸ return sorted(found, key=_serial)"
    text = unescape(re.sub("<[^>]*>", "", html(f"{quote}\n```")))
    assert marked(quote) == ["return sorted(found, key=_serial)"]
    assert "found = set(roots)\n...\nreturn sorted" in text and "found.add(node)" not in text
    with pytest.raises(LectureError, match=r"quotes lines that are not in minigrad/core/node\.py"):
        marked(f"{first}\nfound = []\n▸ return sorted(found, key=_serial)")


def test_what_belongs_to_one_form_may_stand_in_an_answer():
    text = ":::: reveal Why?\nyes\n\n::: page\nmore\n:::\n::::"
    assert "more" in html(text, as_page) and "more" not in html(text) and "yes" in html(text)
    assert ":::" not in html(text) + html(text, as_page)


def test_chosen_keeps_the_tokens_of_a_form():
    tokens = parser(Lecture("t", "")).parse("a\n\n::: slide\nb\n:::")
    assert [t.content for t in chosen(tokens, "page") if t.content] == ["a"]


# ---- the pictures ----------------------------------------------------------------------------------------------------


def test_arrows_end_at_the_border_of_a_box():
    sketch = Sketch(200, 100)
    box = sketch.box(150, 50, "b", width=60, height=40)
    assert box.towards(0, 50, gap=0) == (120, 50) and box.towards(150, 0, gap=0) == (150, 30)
    assert box.towards(150, 50) == (150, 50)
    assert (box.left, box.right, box.top, box.bottom) == ((120, 50), (180, 50), (150, 30), (150, 70))


@needs_browser
def test_a_new_arrow_grows_from_its_start_unless_the_reader_prefers_less_motion(site):
    sketch = Sketch(200, 100)
    sketch.arrow((150, 50), (20, 50), "1", new=True)
    sketch.arrow((20, 50), (150, 50), new=True)
    made = sketch.to_svg("there and back")
    assert made.count('<g class="to-left">') == made.count('<g class="to-right">') == 1 and made.count("</g>") == 2
    name = "getComputedStyle(document.querySelector('.shown .to-left')).animationName"
    with opened(url=(site / "00_start.html").as_uri(), size=(1280, 900)) as page:
        page.locator(".stages").first.get_by_role("button", name="next").click()
        assert page.evaluate(name) == "to-left"
        page.emulate_media(reduced_motion="reduce")
        assert page.evaluate(name) == "none"


def test_cells_that_are_not_lit_are_pale():
    sketch = Sketch(100, 50)
    sketch.cells(0, 0, [["1", "2"]], "gradient", lit=[(0, 1)])
    made = sketch.to_svg("two cells")
    assert made.count("#fdf0e8") == 1  # the fill of a gradient


# ---- in a browser ----------------------------------------------------------------------------------------------------

MEASURE = """() => Reveal.layout() ?? [...document.querySelectorAll('.slides > section')].map((slide, i) => {
  Reveal.slide(i);
  const below = document.querySelector('footer').getBoundingClientRect().top, scale = Reveal.getScale();
  const states = [false, ...(slide.querySelector('details') ? [true] : [])];
  return states.map((open) => {
    slide.querySelectorAll('details').forEach((each) => { each.open = open; });
    const seen = (each) => each.checkVisibility() && !each.closest('details:not([open]) > div');
    const all = (what) => [...slide.querySelectorAll(what)].filter(seen);
    const size = (each) => parseFloat(getComputedStyle(each).fontSize);
    const beyond = (each) => {
      const { left, top, right, bottom } = each.getBoundingClientRect();
      return left < -1 || top < -1 || right > innerWidth + 1 || bottom > below + 1;
    };
    const cropped = (svg) => {
      const [frame, box] = [svg.viewBox.baseVal, svg.getBBox()];
      const [right, bottom] = [box.x + box.width, box.y + box.height];
      return box.x < frame.x || box.y < frame.y || right > frame.x + frame.width || bottom > frame.y + frame.height;
    };
    return {
      cut: [
        ...all('h1 span, h2, h3, p, li, summary, figcaption, pre, td, svg, iframe').filter(beyond),
        ...all('pre, p, summary, td').filter((each) => each.scrollWidth > each.clientWidth + 1),
        ...all('.drawn svg').filter(cropped),
      ].map((each) => each.outerHTML.slice(0, 200)),
      text: all('h1 span, h2, h3, p, li, summary, figcaption, pre').map(size),
      pictures: all('.drawn:not(.row *) svg').map((svg) => svg.getBoundingClientRect().height / scale),
      labels: all('.drawn > div:first-child svg text').map((each) => each.getScreenCTM().a * size(each) / scale),
    };
  });
})"""

# What is cut off in a live view, once it has taken the size of its slide: a busy machine needs several frames.
VIEW = """async () => {
  const scrolls = (each) => getComputedStyle(each).overflow !== 'visible' &&
    (each.scrollWidth > each.clientWidth + 2 || each.scrollHeight > each.clientHeight + 2);
  const all = 'html, .mg-view, .mg-view *:not(svg, svg *, .mg-sr)';
  const parts = () => [...document.querySelectorAll(all)].filter(scrolls);
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await frame();
  await frame();
  for (const begin = performance.now(); parts().length && performance.now() - begin < 5000;) await frame();
  return parts().map((each) => each.className);
}"""


@needs_browser
@pytest.mark.parametrize("key", KEYS)
def test_nothing_is_cut_off_and_all_can_be_read_from_the_last_row(site, key):
    with opened(url=(site / f"{key}.slides.html").as_uri(), size=SIZES[0]) as page:
        page.wait_for_selector("body[data-ready]")
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            for number, states in enumerate(page.evaluate(MEASURE), start=1):
                for state in states:
                    where = f"{key}, slide {number} at {width} × {height}"
                    assert state["cut"] == [], where
                    assert set(state["text"]) <= SCALE, where
                    assert all(high >= 100 for high in state["pictures"]), where
                    assert min(state["labels"], default=24) >= 20, where
            for frame in page.query_selector_all(".live iframe"):
                frame.evaluate("(frame) => Reveal.slide(Reveal.getSlides().indexOf(frame.closest('section')))")
                assert frame.content_frame().evaluate(VIEW) == [], f"{frame.get_attribute('src')} at {width} × {height}"


@needs_browser
def test_a_deck_is_dark_or_light_and_a_key_changes_it(site):
    paper = "getComputedStyle(document.querySelector('.reveal-viewport')).backgroundColor"
    line = "getComputedStyle(document.querySelector('.drawn svg text')).fill"
    with opened(url=(site / "00_start.slides.html").as_uri(), size=(1280, 720), dark=True) as page:
        page.wait_for_selector("body[data-ready]")
        assert page.evaluate(paper) == "rgb(20, 23, 27)" and page.evaluate(line) == "rgb(230, 234, 238)"
        page.keyboard.press("d")
        assert page.evaluate(paper) == "rgb(255, 255, 255)" and page.evaluate(line) == "rgb(27, 32, 38)"
        page.frame_locator(".live iframe").locator("html[theme=light] .mg-view").wait_for(state="attached")


@needs_browser
def test_a_live_slide_shows_its_whole_picture_whenever_its_data_are_unpacked(site):
    with opened(url=(site / "10_graph_mode.slides.html").as_uri(), size=(1280, 720)) as page:
        page.wait_for_selector("body[data-ready]")
        for title in ("Be the tracer", "As a script"):
            page.evaluate("""(title) => {
              const slide = Reveal.getSlides().find((each) => each.querySelector("h2, h3")?.textContent === title);
              const { h, v } = Reveal.getIndices(slide);
              Reveal.slide(h, v || 0);
            }""", title)
            canvas = page.frame_locator("section.present .live iframe").locator(".mg-canvas")
            canvas.locator("svg").wait_for()
            page.wait_for_function("document.querySelector('section.present .live iframe')")
            whole = "c => c.scrollWidth === c.clientWidth && c.scrollHeight === c.clientHeight"
            frame = page.query_selector("section.present .live iframe").content_frame()
            frame.wait_for_function(whole, arg=canvas.element_handle())
            settled(frame)
            assert canvas.evaluate(whole)


@needs_browser
def test_the_line_below_says_where_one_is(site):
    with opened(url=(site / "06_reverse_mode.slides.html").as_uri(), size=(1280, 720)) as page:
        page.wait_for_selector("body[data-ready]")
        here = page.locator("footer [aria-current=step]")
        assert here.count() == 0
        page.locator("footer a", has_text="The walk").click()
        page.wait_for_function("Reveal.getIndices().h > 5")
        assert here.inner_text() == "The walk"
        assert page.locator("section.present h2").inner_text() == "The walk"


@needs_browser
def test_the_right_arrow_shows_the_stages_of_a_picture(site):
    with opened(url=(site / "06_reverse_mode.slides.html").as_uri(), size=(1280, 720)) as page:
        page.wait_for_selector("body[data-ready]")
        page.locator("footer a", has_text="The walk").click()
        page.wait_for_function("document.querySelector('section.present h2')?.innerText === 'The walk'")
        at = page.evaluate("Reveal.getIndices().h")
        for shown in (1, 2, 3):
            page.keyboard.press("ArrowRight")
            page.wait_for_function(f"document.querySelectorAll('section.present .stages .visible').length === {shown}")
        assert page.evaluate("Reveal.getIndices().h") == at
        page.keyboard.press("ArrowRight")
        page.wait_for_function(f"Reveal.getIndices().h === {at + 1}")


@needs_browser
def test_what_changes_between_stages_and_in_answers_moves_unless_the_reader_prefers_less_motion(site):
    moving = "document.getAnimations().filter((each) => each.effect.target.closest('section.present svg')).length"
    with opened(url=(site / "11_fusion.slides.html").as_uri(), size=(1280, 720)) as page:
        page.wait_for_selector("body[data-ready]")
        for name in ("Place a node", "The algebra"):  # stages, an answer
            go = f"""Reveal.slide([...document.querySelectorAll('.slides > section')].findIndex(
              (each) => each.querySelector('h3')?.textContent === '{name}'))"""
            for preference, moves in (("reduce", False), ("no-preference", True)):
                page.emulate_media(reduced_motion=preference)
                page.evaluate(go)
                page.evaluate("while (Reveal.prevFragment());")
                moved = page.evaluate(f"(Reveal.nextFragment(), {moving})")  # in one moment: the motion ends soon
                assert (moved > 0) is moves, (name, preference)


@needs_browser
def test_a_page_steps_through_a_picture_by_buttons(site):
    with opened(url=(site / "00_start.html").as_uri(), size=(1280, 900)) as page:
        figure = page.locator(".stages").first
        assert figure.locator("svg:visible").count() == 1 and "1 of 5" in figure.inner_text()
        figure.get_by_role("button", name="next").click()
        assert figure.locator("svg:visible").count() == 1 and "2 of 5" in figure.inner_text()
        figure.get_by_role("button", name="back").click()
        assert figure.get_by_role("button", name="back").is_disabled()
    with opened(url=(site / "00_start.html").as_uri(), scripts=False) as page:
        assert page.locator(".stages").first.locator("svg:visible").count() == 5


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_no_formula_needs_a_scroll_bar_and_pictures_are_wide(site, width):
    with opened(url=(site / "06_reverse_mode.html").as_uri(), size=(width, 900)) as page:
        wide = page.evaluate("""[...document.querySelectorAll('math')].filter((each) =>
          each.scrollWidth > each.clientWidth + 1 || getComputedStyle(each).overflowX !== 'visible').length""")
        assert wide == 0 and page.evaluate("document.documentElement.scrollWidth") <= width
        picture, text = (page.locator(f"main > {what}").first.bounding_box() for what in (".drawn", "p:not([class])"))
        assert picture["width"] > 1.04 * text["width"]
