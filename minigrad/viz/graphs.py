"""`mg.viz.graph`: a picture of a graph, to look around in on a page, or to write to a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.node import Node
from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.errors import MinigradError
from ..support.table import counted, escape, printable
from .colours import themed
from .exhibit import Bundle, Data, Exhibit, Forms
from .mirror import flowing, with_gradients
from .models import around, names_of_tensors, paths_in, tensors_of
from .naming import names_in_code
from .numbers import Summary
from .opening import SEEN, BoxNames, Part, folded
from .phases import phased
from .rules import formula_of, mathml, rule_of
from .scene import Box, Edge, Path, Scene, Subject, excerpt, is_parameter, scene_of
from .steps import history_of, record_steps, values_of
from .svg import FONT, LINES, LOOKS, QUIET, described, draw, title_of

MOST = 500  # boxes: a larger picture is unreadable
LONGEST = 50_000  # operations: of more, no picture is made


def graph(
    what: Any, *args: Any, backward: bool = False, names: Mapping[str, Tensor] | None = None,
    values: bool = False, budget: int = SEEN, **kwargs: Any,
) -> Picture:
    """Draw the operations that computed a tensor, or those of a function or model for these arguments.

    `backward=True` adds the gradients, and `values=True` the values, if `what` is a tensor.  Names come from your code,
    from a model's parameters, and from `names`.  Scopes are closed until at most `budget` boxes are visible.

    >>> w = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> loss = (w * w).sum()
    >>> mg.viz.graph(loss, backward=True)
    <picture of a graph of 1 parameter, 2 operations, 3 gradient operations>
    >>> mg.viz.graph(lambda x: mg.tanh(x) + 1, mg.ones(3))
    <picture of a graph of 1 input, 2 operations>
    """
    if isinstance(what, Tensor):
        subject = _recorded(what, names, values, backward)
    elif values:
        raise MinigradError(
            "a graph that was only recorded has no values", expect="values=True for a tensor",
            hint="mg.viz.graph(function(*arguments), values=True)",
        )
    elif hasattr(what, "nodes") and hasattr(what, "outputs"):
        from .compiled import written_out  # brings the compiler, which the picture of a tensor does not need

        subject = written_out(what, what.inputs)
    elif callable(what):
        from .compiled import FunctionCall, traced

        subject = traced(FunctionCall(what, args, kwargs), backward)
    else:
        raise MinigradError(
            f"there is no graph in a {type(what).__name__}",
            expect="a tensor, a Graph, or a function or model with arguments",
        )
    check_length(len(subject.nodes), LONGEST)
    held = {*paths_in(subject.models).values()}
    scene = scene_of(subject.nodes, subject.results, subject.names, subject.values, held)
    number = {node: i for i, box in enumerate(scene.boxes) for node in box.nodes}
    # From what a round of a loop makes to the carry of the next round.
    back = [Edge(number[a], number[b], 1) for a, b in subject.again if a in number and a is not b]
    scene = Scene(scene.boxes, (*scene.edges, *back))
    parts = folded(phased(scene, subject.stored) if subject.phases else scene, budget)
    if backward:
        wanted = flowing(subject.nodes)
        parts = [part._replace(scene=with_gradients(part.scene, subject.gradients or None, wanted)) for part in parts]
    check_boxes(parts[0].scene)
    return Picture(parts).titled(subject.title, nodes=subject.nodes)


def check_length(count: int, most: int) -> None:
    """Refuse what has too many operations for a picture, before it takes long."""
    if count > most:
        raise MinigradError(
            f"{count:,} operations are too many for a picture", expect=f"at most {most:,}",
            hint="fewer layers or fewer rounds of a loop show the same",
        )


def _recorded(
    tensor: Tensor, names: Mapping[str, Tensor] | None, values: bool, backward: bool
) -> Subject:
    """What a tensor was computed from, with summaries of the values and of the gradients, if they are wanted."""
    if tensor.node is None:
        raise MinigradError(
            "nothing was recorded for this tensor: nothing to draw",
            expect="a tensor made from one that requires a gradient",
            hint="mg.viz.graph(function, *arguments), or with mg.record():",
        )
    gradients = dict[Node, Summary]()
    if values and backward:
        recording = record_steps(tensor)
        nodes, summaries = recording.nodes, recording.values
        gradients = {step.target: step.total for step in recording.steps}
    else:
        nodes = history_of([tensor.node])[1]
        summaries = values_of(nodes)[0] if values else {}
    known, models = known_of(nodes, names)
    return Subject(
        nodes, nodes[-1:], known, models,
        values=_without_maps(summaries) if values else None, gradients=_without_maps(gradients),
    )


def _without_maps(summaries: Mapping[Node, Summary]) -> dict[Node, Summary]:
    """Numbers alone: a heat map in each box is the step view's, whose page is twice as large."""
    return {node: each._replace(cells="") for node, each in summaries.items()}


def shown(what: Any) -> Bundle:
    """The output of a graph in a notebook: a picture, or one line if the graph is too large."""
    try:
        return graph(what)._repr_mimebundle_()
    except MinigradError as error:
        return {"text/plain": f"{what!r}: {error}"}


def known_of(
    nodes: list[Node], names: Mapping[str, Tensor] | None
) -> tuple[dict[Node, str], Sequence[Module]]:
    """The names of values in the user's code, and of tensors in a model, a dictionary, or variables; and the models."""
    known, models = names_of_tensors(tensors_of(nodes), nodes, around(), names or {})
    return names_in_code(nodes, known), models


def check_boxes(scene: Scene) -> None:
    """Refuse a picture in which nothing could be read."""
    if len(scene.boxes) > MOST:
        raise MinigradError(
            f"{len(scene.boxes):,} boxes would be unreadable",
            expect=f"at most {MOST}",
            hint="with mg.scope('name'): draws what is inside as one box",
        )


# The picture ----------------------------------------------------------------------------------------------------------


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

    def data(self) -> Data:
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


def _info(box: Box, names: BoxNames) -> Data:
    """The facts about a box that the side panel shows, with the names of values."""
    node = box.nodes[0] if len(box.nodes) == 1 else None
    about = [*dict.fromkeys([*box.lines, *box.about]), *["a result"] * box.result]
    info: Data = {
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
