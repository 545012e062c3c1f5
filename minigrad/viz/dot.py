"""A scene in the language of Graphviz, for its layouts, for PDF files, and for other programs that read it."""

from __future__ import annotations

from typing import Any

from ..support.table import escape, printable
from .scene import Box, Scene
from .svg import FONT, LINES, LOOKS, QUIET, title_of


def to_graphviz(scene: Scene, direction: str = "down") -> Any:
    """The scene as a `graphviz.Digraph`; its methods `render` and `pipe` need the program `dot`.

    >>> print(to_graphviz(Scene((Box("x", "input"),), ())).source.splitlines()[0])
    digraph minigrad {
    """
    import graphviz

    graph = graphviz.Digraph("minigrad", graph_attr={"rankdir": "TB" if direction != "right" else "LR"})
    font = FONT.split(",")[-1].strip()
    graph.attr("node", shape="box", fontname=font, fontsize="11", margin="0.12,0.05")
    graph.attr("edge", arrowsize="0.6", color=LOOKS["operation"][0])
    graph.attr("graph", fontname=font, fontsize="10", fontcolor=QUIET, style="rounded", color=LINES)
    tree: dict[str, Any] = {}
    for key, box in enumerate(scene.boxes):
        level = tree
        for name in box.scope:
            level = level.setdefault(name, {})
        level[f"\0{key}"] = box  # a box: no scope has a name that begins like this
    _fill(graph, tree, "")
    for source, target, _ in scene.edges:
        back = scene.boxes[target].kind == "gradient"
        graph.edge(str(source), str(target), **({"color": LOOKS["gradient"][0], "constraint": "false"} if back else {}))
    return graph


def _fill(graph: Any, tree: dict[str, Any], path: str) -> None:
    for name, inside in tree.items():
        if isinstance(inside, Box):
            graph.node(name[1:], _label(inside), **_look(inside))
            continue
        with graph.subgraph(name=f"cluster{path}/{printable(name)}") as cluster:
            cluster.attr(label=f"<{_text(name)}>")
            _fill(cluster, inside, f"{path}/{name}")


def _label(box: Box) -> str:
    lines = "".join(f'<br/><font point-size="9" color="{QUIET}">{_text(line)}</font>' for line in box.lines)
    return f"<<b>{_text(title_of(box))}</b>{lines}>"


def _text(text: str) -> str:
    """Text of the user in one line, escaped for Graphviz."""
    return escape(" ".join(text.split()))


def _look(box: Box) -> dict[str, str]:
    border, fill, corner, _ = LOOKS[box.kind]
    shape, twice = "box" if corner < 50 else "ellipse", "2" if box.kind == "group" or box.result else "1"
    return {"color": border, "fillcolor": fill, "style": "filled,rounded", "peripheries": twice, "shape": shape}
