"""`Picture`: the drawing of a graph, to look around in on a page, or to write to a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..support.table import counted, escape, printable
from .colours import themed
from .exhibit import Exhibit, Forms
from .opening import BoxNames, Part
from .rules import formula_of, mathml, rule_of
from .scene import Box, Path, Scene, excerpt, is_parameter
from .svg import FONT, LINES, LOOKS, QUIET, described, draw, title_of


class Picture(Exhibit):
    """A drawing of a scene.  A notebook shows it, and `save` writes a file.

    >>> x = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> mg.viz.graph((x * 2).sum())
    <picture of a graph of 1 parameter, 2 operations>
    """

    wordy = False
    script = "graph"

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts, self.scene = parts, parts[0].scene
        self.title = f"picture of {described(self.scene)}"

    def named(self) -> str:
        """The title of a saved page."""
        results = [box.name or title_of(box) for box in self.scene.boxes if box.result]
        return f"Graph of {', '.join(results)}" if results else super().named()

    def to_svg(self) -> str:
        """The picture as the text of an SVG file."""
        return draw(self.scene)

    def data(self) -> dict[str, Any]:
        """The pictures, with scopes open and closed, and the facts about each box, as plain data."""
        every = [(_thing(box, part.scene), box) for part in self.parts for box in part.scene.boxes]
        known = dict(sorted(every, key=lambda each: len(each[1].scope)))  # where most scopes are around it
        numbers = {thing: i for i, thing in enumerate(known)}
        parts = [
            {
                "svg": themed(draw(part.scene)), "edges": [edge[:2] for edge in part.scene.edges],
                "title": part.title, "about": _summed(part.scene), "parent": part.parent, "doors": part.doors,
                "info": [numbers[_thing(box, part.scene)] for box in part.scene.boxes],
            }
            for part in self.parts
        ]
        names = BoxNames(self.parts)
        return {"about": parts[0]["about"], "scopes": parts, "info": [_info(box, names) for box in known.values()]}

    def to_graphviz(self) -> Any:
        """A `graphviz.Digraph` of the same boxes and arrows, which a notebook shows in the layout of Graphviz.

        Its methods `render` and `pipe` need the program `dot`.

        >>> print(mg.viz.graph(mg.tanh, mg.ones(3)).to_graphviz().source.splitlines()[0])
        digraph minigrad {
        """
        import graphviz

        graph = graphviz.Digraph("minigrad")
        font = FONT.split(",")[-1].strip()
        graph.attr("node", shape="box", style="filled,rounded", fontname=font, fontsize="11", margin="0.12,0.05")
        graph.attr("edge", arrowsize="0.6")
        graph.attr("graph", fontname=font, fontsize="10", fontcolor=QUIET, style="rounded", color=LINES)
        clusters: dict[Path, int] = {}
        for key, box in enumerate(self.scene.boxes):
            border, fill, corner, _ = LOOKS[box.kind]
            shape, twice = "box" if corner < 50 else "ellipse", 1 + (box.kind == "group" or box.result)
            lines = "".join(f'<br/><font point-size="9" color="{QUIET}">{_text(line)}</font>' for line in box.lines)
            drawn = f'{key} [label=<<b>{_text(title_of(box))}</b>{lines}> color="{border}" fillcolor="{fill}" '
            drawn += f"shape={shape} peripheries={twice}]"
            for depth in range(len(box.scope), 0, -1):  # Graphviz joins clusters of one name
                path = box.scope[:depth]
                cluster = clusters.setdefault(path, len(clusters))
                drawn = f"subgraph cluster{cluster} {{ label=<{_text(path[-1])}> {drawn} }}"
            graph.body.append(f"\t{drawn}\n")
        for source, target, _ in self.scene.edges:
            back = self.scene.boxes[target].kind == "gradient"
            graph.edge(str(source), str(target), color=LOOKS["gradient" if back else "operation"][0])
        return graph

    def to_dot(self) -> str:
        """The text of `to_graphviz()`."""
        return str(self.to_graphviz().source)

    def _forms(self) -> Forms:
        return {**super()._forms(), ".dot": self.to_dot}

    def in_words(self) -> str:
        """The boxes in words, one in each line."""
        return "\n".join(f"{title_of(box)}: {', '.join(box.lines)}" for box in self.scene.boxes)


def _thing(box: Box, scene: Scene) -> Any:
    """What a box stands for, in whatever picture: the same nodes or scope, or the gradient of these."""
    of = box if box.mirrors is None else scene.boxes[box.mirrors]
    return of.nodes, of.path, box.mirrors is None


def _summed(scene: Scene) -> str:
    """What there is in a picture, and how many numbers the parameters in its closed boxes have."""
    held = {node for box in scene.boxes if box.kind == "group" for node in box.nodes if is_parameter(node)}
    numbers = f" with {counted(len(held), 'parameter')}, {sum([node.size for node in held]):,} numbers in all"
    return described(scene, legend=True) + numbers * bool(held)


def _info(box: Box, names: BoxNames) -> dict[str, Any]:
    """The facts about a box that the side panel shows, with the names of values."""
    node = box.nodes[0] if len(box.nodes) == 1 else None
    about = [*dict.fromkeys([*box.lines, *box.about]), *["a result"] * box.result]
    info: dict[str, Any] = {
        "title": title_of(box), "about": "\n".join(about[node is not None and box.shown is None :]), "formula": "",
        "scope": " / ".join(box.scope), "rules": [], "line": None,
    }
    if node is None:
        return info
    if node.op is not None:
        called = names.seen_from(node)
        info["formula"] = mathml(formula_of(node, called))
        info["rules"] = [mathml(rule_of(node, rule.index, called)) for rule in node.plan.rules]
    return info | {"line": excerpt(node.where)}


def _text(text: str) -> str:
    """Text of the user in one line, escaped for Graphviz."""
    return escape(" ".join(printable(text).split()))
