"""Terms before use: linked or defined where a unit, or one that it needs, uses them first; prerequisites are true."""

import re
from functools import cache

import pytest

from lectures.site.terms import COMMON, meanings, pattern, spellings, with_terms
from minigrad_course.authoring import build
from minigrad_course.unit import units
from tests.course.running import ROOT

# What a unit teaches: names and words whose use in a later unit needs it.
TAUGHT = {
    r"cpu:1|mg\.devices\.\w+": "03_devices",
    r"mg\.viz\.graph": "04_graphs",
    r"course\.rule|gradient rules?|mg\.gradcheck": "05_gradient_functions",
    r"course\.kept_bytes|course\.backward": "06_reverse_mode",
    r"mg\.checkpoint|checkpointing": "07_forward_and_memory",
    r"mg\.optim\.\w+|AdamW?|batch norm|momentum|mg\.nn\.Dropout": "08_training",
    r"course\.costs|course\.operator|roofline|GELU|gelu": "09_eager_costs",
    r"mg\.jit|guards?|placeholders?": "10_graph_mode",
    r"mg\.viz\.fusion|rewrite rules?": "11_fusion",
    r"mg\.distributed\.\w+|all-reduce": "13_distributed",
}
FORWARD = {  # a unit shows what a later one explains, and says so; or one line mentions what another unit is about
    ("11_fusion", "07_forward_and_memory"),
}


def spoken(text):
    """Markdown without code, addresses and what the speaker says."""
    text = re.sub(r"^::: notes\n.*?^:::$|```.*?```", "", text, flags=re.S | re.M)
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "", text))


@cache
def page(key):
    return spoken((ROOT / "lectures" / f"{key}.md").read_text(encoding="utf-8"))


@cache
def cells(key):
    return [cell for name in (build.DEMO, build.EXERCISE) for cell in build.read(build.source_of(key, name)).cells]


def notebooks(key):
    text = [cell.source for cell in cells(key) if cell.cell_type == "markdown"]
    return spoken("\n\n".join([*text, *[task().text() for task in units()[key].tasks.values()]]))


def needed(key):
    """The units that a unit needs, and those that they need."""
    before = units()[key].prerequisites
    return {*before, *[other for each in before for other in needed(each)]}


FORMS = [form for word in meanings() if word not in COMMON for form in spellings(word)]


@pytest.mark.parametrize("key", units())
def test_a_term_of_the_notebooks_is_on_the_page_or_defined_or_in_a_unit_before(key):
    """The page links each of its terms at the first use; so do the pages of the units that this one needs."""
    text, pages = notebooks(key), [page(key), *map(page, needed(key))]
    unknown = []
    for form in FORMS:
        first = re.search(pattern((form,)), text)
        if first and not any(re.search(pattern((form,)), each) for each in pages):
            bold = {"**", "*"} & {text[: first.start()][-2:], text[: first.start()][-1:]}
            unknown += [f"{form}: ...{text[max(0, first.start() - 40) : first.end() + 20]}..."] * (not bold)
    assert unknown == [], "define it there in bold, use it on the page of the unit, or name the unit that has it"


@pytest.mark.parametrize("key", units())
def test_the_names_that_a_unit_uses_give_its_prerequisites(key):
    """A unit needs the units that teach the names that it uses, and those that its own units need."""
    everything = "\n".join([*[cell.source for cell in cells(key)], page(key)])
    number, missing = units()[key].number, []
    for names, teacher in TAUGHT.items():
        used = re.search(rf"(?<![\w.])(?:{names})(?!\w)", everything)
        if used and units()[teacher].number < number and teacher not in needed(key) and (key, teacher) not in FORWARD:
            missing.append(f"{used[0]} is taught in {teacher}")
    assert missing == []


def test_what_the_issue_found_is_declared():
    assert "09_eager_costs" in needed("10_graph_mode") & needed("11_fusion")
    assert "08_training" in needed("13_distributed")


def test_pass_has_one_meaning():
    """A pass goes from a graph to a graph, and those of autodiff have names.  Bytes make trips, rows have loops."""
    for key in units():
        text = re.sub(r"\s+", " ", page(key) + notebooks(key))
        assert not re.search(r"\b(in|as|with) one pass\b(?! (of|back|forward))", text), key
        assert "one loop over a row, not a pass" not in text


def test_kernel_has_one_meaning():
    """It computes operations on a device.  What a convolution multiplies is a filter."""
    for key in ("02_arrays", "08_training"):
        text = page(key) + notebooks(key)
        assert not re.search(r"kernels? (is|are) (a )?small picture|windows? (times|and) (a |all )?kernels?", text)
    assert "filter" in meanings()["convolution"]


@pytest.mark.parametrize(
    ("short", "long"), [("MPI", "Message Passing Interface"), ("NCCL", "Collective Communications Library")])
def test_abbreviations_are_spelled_out_at_their_first_use(short, long):
    assert long in meanings()[short]
    for text in (page("13_distributed"), notebooks("13_distributed"), notebooks("14_applications")):
        at = re.search(rf"\b{short}\b", text)
        assert at is None or long in re.sub(r"\s+", " ", text[at.start() - 40 : at.end() + 120])


# ---- links on pages --------------------------------------------------------------------------------------------------

WORDS = {
    "kernel": "Computes \"one\" operation.", "kernel table": "Kernels.", "map, reduce": "Two.", "GNN": "A network.",
}


@pytest.mark.parametrize(
    ("body", "linked"),
    [
        ("<p>A kernel, two kernels.</p>", ["kernel"]),
        ("<p>Kernels first.</p>", ["kernel"]),
        ("<p>The kernel table has a kernel.</p>", ["kernel-table", "kernel"]),
        ("<h2>A kernel</h2><p>none</p>", []),
        ('<p><a href="x">kernel</a> <code>kernel</code> <svg><text>kernel</text></svg></p>', []),
        ("<p>To reduce, not reduced; subkernel; kernel-like.</p>", ["map-reduce"]),
        ("<p>gnn and GNNs</p>", ["gnn"]),
        ("", []),
    ],
)
def test_the_first_use_of_a_term_is_a_link(body, linked):
    made = with_terms(body, WORDS)
    assert re.findall(r'glossary.html#([\w-]+)"', made) == linked
    assert re.sub(r'<a class="term"[^>]*>(.*?)</a>', r"\1", made) == body


def test_the_meaning_is_in_the_title_of_the_link():
    assert 'title="Computes &quot;one&quot; operation."' in with_terms("<p>kernel</p>", WORDS)


def test_pages_of_lectures_and_notebooks_link_their_terms(site):
    for name in ("09_eager_costs.html", "09_eager_costs.exercise.html", "13_distributed.html"):
        text = (site / name).read_text(encoding="utf-8")
        found = re.findall(r'<a class="term" href="glossary.html#([\w-]+)"', text)
        assert len(found) > 5 and len(found) == len(set(found))
    glossary = (site / "glossary.html").read_text(encoding="utf-8")
    assert all(f'id="{anchor}"' in glossary for anchor in found)
