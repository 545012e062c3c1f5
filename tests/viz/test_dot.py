"""Graphviz: the DOT language, the Python package, and the program `dot` if it is installed."""

import re
import shutil
import sys
import xml.dom.minidom

import pytest

import minigrad as mg
from minigrad.viz.opening import Part
from minigrad.viz.scene import Box, Edge, Scene

needs_dot = pytest.mark.skipif(not shutil.which("dot"), reason="there is no program dot here: apt install graphviz")


def picture(**options):
    w, x = mg.asarray([[1.0, 2.0]], requires_grad=True), mg.asarray([[3.0], [4.0]])
    with mg.scope("layer"):
        h = mg.tanh(w @ x)
    return mg.viz.graph((h * h).sum(), backward=True, **options)


@pytest.mark.slow
def test_a_digraph_of_the_package_graphviz():
    import graphviz

    digraph = picture().to_graphviz()
    assert isinstance(digraph, graphviz.Digraph)
    assert picture().to_dot() == digraph.source and digraph.source == picture().to_dot()


HOSTILE = [
    '"quoted"', "{record|of}", "<b>html</b>", "back\\slash\\n", "]; evil [", "a -> b", "javascript:alert(1)",
    "new\nline",
]


@needs_dot
def test_dot_reads_hostile_names_as_text():
    boxes = [Box(name, "operation", (name,), (name,)) for name in HOSTILE]
    scene = Scene(tuple(boxes), tuple(Edge(i, i + 1, 0) for i in range(len(boxes) - 1)))
    drawn = mg.viz.Picture([Part(scene, "", 0, {})]).to_graphviz().pipe(format="svg").decode()
    document = xml.dom.minidom.parseString(drawn)
    shown = ["".join(node.data for node in text.childNodes) for text in document.getElementsByTagName("text")]
    for name in HOSTILE:
        words = re.sub(r"\s+", " ", name)
        assert sum(re.sub(r"\s+", " ", each) == words for each in shown) == 3, name  # frame, title and line
    assert len([g for g in document.getElementsByTagName("g") if g.getAttribute("class") == "node"]) == len(HOSTILE)
    assert "xlink:href" not in drawn and not document.getElementsByTagName("script")


@needs_dot
def test_graphviz_draws_the_same_boxes():
    made = picture()
    drawn = made.to_graphviz().pipe(format="svg").decode()
    assert drawn.count('class="node"') == len(made.scene.boxes)
    assert drawn.count('class="edge"') == len(made.scene.edges)
    assert made.to_graphviz().pipe(format="pdf").startswith(b"%PDF")


@pytest.mark.slow
def test_a_png_of_our_own(tmp_path):
    pytest.importorskip("resvg_py", reason="there is no package resvg-py in this environment")
    picture().save(tmp_path / "graph.png")
    small = picture().to_png(1.0)
    assert small.startswith(b"\x89PNG")
    width = int.from_bytes(small[16:20], "big")
    assert width == round(float(re.search(r'width="([\d.]+)"', picture().to_svg())[1]))


@pytest.mark.parametrize(
    ("package", "named", "does"), [("resvg_py", "resvg-py", "to_png"), ("anywidget", "anywidget", "widget")]
)
def test_a_missing_package_is_named(monkeypatch, package, named, does):
    from minigrad.viz import exhibit

    exhibit.widget_class.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(mg.PackageError, match=rf"{named}, which is not installed[\s\S]*pip install {named}"):
        getattr(picture(), does)()
    exhibit.widget_class.cache_clear()


def test_rules_without_latex2mathml_are_lines_of_text(monkeypatch):
    from minigrad.viz.rules import mathml

    mathml.cache_clear()
    monkeypatch.setitem(sys.modules, "latex2mathml.converter", None)
    assert mathml(r"\partial x \cdot y") == "<code>∂x · y</code>"
    mathml.cache_clear()
