"""`mg.viz.graph`: a picture of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.node import Node
from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.errors import MinigradError
from .mirror import flowing, with_gradients
from .models import around, names_of_tensors, paths_in, tensors_of
from .naming import names_in_code
from .numbers import Summary
from .opening import SEEN, folded
from .phases import phased
from .picture import Picture
from .scene import Edge, Scene, Subject, scene_of
from .steps import history_of, record_steps, values_of

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


def shown(what: Any) -> dict[str, str]:
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
