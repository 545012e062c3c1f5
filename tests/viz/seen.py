"""How the views are seen: every view of ten programs in windows of three widths, light and dark, in a browser.

    python -m tests.viz.seen OUT                              every page as a picture, and OUT/report.txt: what is wrong
    python -m tests.viz.seen OUT --only 'step*' --sizes 390   some of them

What is wrong: text smaller than 9 px, something wider than its frame without a sign, text on text, contrast below 4.5,
a button without a name or out of the reach of the keyboard, a step that is not read aloud, movement where the reader
wants none.  (Whether a meaning is in a colour alone is for people to see.)
"""

from __future__ import annotations

import argparse
import fnmatch
from collections import Counter
from pathlib import Path

from minigrad.support.errors import MinigradError
from minigrad.viz.exhibit import introduction
from tests.viz.browser import opened, settled
from tests.viz.the_views import every_case, made

SIZES = ((1600, 900), (900, 900), (390, 844))
LIMITS = {"size": 9.0, "contrast": 4.5}
SCRIPT = (Path(__file__).parent / "seen.js").read_text(encoding="utf-8")
ALOUD = "[...document.querySelectorAll('.mg-view [aria-live]')].map((each) => each.textContent).join()"
MOVING = "document.getAnimations().filter((each) => each.playState === 'running').length"
STOPPED = """Promise.allSettled(document.getAnimations().map((each) =>
  each.effect.getComputedTiming().endTime < Infinity && each.finished))"""  # what began to move before, and ends
PICTURE = "document.querySelector('.mg-view').innerHTML"
KEYS = ("ArrowRight", "Enter", "ArrowDown", "Tab", "Enter")  # a step, or a first mark and its facts


def page_of(view, title="A title"):
    """The page that `view.save` writes."""
    return view.to_html(title, introduction(title, "A sentence by the author.", "x = 1"))


def problems_of(page):
    """What is wrong with the page as it is drawn now: sentences by kind."""
    page.locator(".mg-view").first.wait_for()
    settled(page)
    return page.evaluate(SCRIPT, LIMITS)


def problems_of_keys(page):
    """What is wrong with the view while keys are pressed: it changes, and says so."""
    page.locator(".mg-view").first.focus()
    before, aloud = page.evaluate(PICTURE), page.evaluate(ALOUD)
    for key in KEYS:
        page.keyboard.press(key)
        settled(page)
        if page.evaluate(ALOUD) != aloud:
            return {}
    unchanged = page.evaluate(PICTURE) == before
    return {"silent": ["no key changes the view" if unchanged else "nothing is said of what the keys changed"]}


def problems_of_motion(page):
    """What moves although the reader wants no motion."""
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(STOPPED)
    page.locator(".mg-view").first.focus()
    page.keyboard.press("ArrowRight")
    settled(page)
    now, moving = page.evaluate(PICTURE), page.evaluate(MOVING)
    page.wait_for_timeout(150)
    if moving or page.evaluate(PICTURE) != now:
        return {"motion": ["the picture still moves after a step"]}
    return {}


def seen(html, size, dark, picture=None):
    """All problems of a page in a window; with `picture`, its screenshot is written there."""
    with opened(html, size=size, dark=dark) as page:
        found = problems_of(page)
        if picture is not None:
            page.screenshot(path=picture)
        for kind, some in (problems_of_keys(page) | problems_of_motion(page)).items():
            found.setdefault(kind, []).extend(some)
    return found


def lines_of(found):
    """Problems as lines of a report, of each kind the first few."""
    for kind, sentences in found.items():
        more = [f"… and {len(sentences) - 6} more"] if len(sentences) > 6 else []
        yield from [f"  {kind}: {sentence}" for sentence in sentences[:6] + more]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="*", help="a pattern of view-program, as 'step-*'")
    parser.add_argument("--sizes", type=int, nargs="*", default=[width for width, _ in SIZES])
    parser.add_argument("--light", action="store_true", help="the light theme alone")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    report, counts = [], Counter()
    for name, view in every_case():
        case = f"{view}-{name}".rstrip("-").replace(" ", "_")
        if not fnmatch.fnmatch(case, given.only):
            continue
        try:
            html = page_of(made(name, view))
        except MinigradError as error:  # "the machine is busy"
            report += [case, f"  refused: {error.args[0]}"]
            continue
        for size in SIZES:
            for dark in (False, True):
                if size[0] not in given.sizes or (dark and given.light):
                    continue
                page = f"{case}-{size[0]}-{'dark' if dark else 'light'}"
                found = seen(html, size, dark, given.out / f"{page}.png")
                counts.update({(view, kind): len(some) for kind, some in found.items()})
                report += [page, *(lines_of(found) or ())] if found else []
        print(case, flush=True)
        (given.out / "report.txt").write_text("\n".join([*report, ""]), encoding="utf-8")
    sums = [f"{count:6} {view}: {kind}" for (view, kind), count in sorted(counts.items())]
    (given.out / "report.txt").write_text("\n".join([*sums, "", *report, ""]), encoding="utf-8")
    print("\n".join(sums) or "nothing is wrong")


if __name__ == "__main__":
    main()
