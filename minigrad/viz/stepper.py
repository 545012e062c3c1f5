"""`mg.viz.step`: a backward pass to step through, in a notebook or on a page.

Everything that can be seen is computed here and handed over as data: what the page does is to show it.
"""

from __future__ import annotations

import base64
import linecache
from collections.abc import Mapping
from html import escape
from pathlib import Path as File
from typing import Any

from ..core.errors import MinigradError
from ..core.node import Leaf, Node
from ..core.source import line_of
from ..core.tensor import Tensor
from ..nn.module import Module
from .folding import BUDGET, fold
from .graphs import MOST, names_of
from .mirror import with_gradients
from .numbers import Summary
from .page import live, page, widget
from .rules import mathml, rule_of
from .scene import Scene, scene_of, type_of
from .steps import Recording, Step, record_steps
from .svg import draw

AROUND = 2  # lines of code that are shown before and after the one that made a node


def step(
    result: Tensor, cotangent: Tensor | None = None, *, names: Mapping[str, Tensor] | Module | None = None,
    direction: str = "auto", budget: int = BUDGET,
) -> Stepper:  # fmt: skip
    """Step through the backward pass of a tensor: what each operation passes back, by which rule, and what is added.

    Nothing is changed: `backward()` can be called before (with `retain_graph=True`) and after.

    >>> w = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> mg.viz.step((w * w).sum())
    <backprop of 3 nodes, 5 steps>
    """
    return Stepper(record_steps(result, cotangent), result.node, names, direction, budget)


class Stepper:
    """A backward pass that shows itself: in a notebook as a widget, in a file as a page, elsewhere as text."""

    def __init__(
        self, recording: Recording, result: Node, names: Any = None, direction: str = "auto", budget: int = BUDGET
    ) -> None:
        self.recording, self.result, self.direction = recording, result, direction
        self.steps = recording.steps
        self.names = names_of(recording.nodes, names)
        self._number = {node: i for i, node in enumerate(recording.nodes)}
        self._scene = scene_of(recording.nodes, [result], self.names, values=recording.values)
        whole = len(recording.nodes) <= MOST
        folded = fold(self._scene, budget)
        if len(folded.boxes) > MOST:
            raise MinigradError(
                f"stepping through {len(recording.nodes):,} operations side by side would show nothing",
                hint="with mg.scope('name'): around parts of the computation, or step through a smaller example",
            )
        scenes = {"folded": folded, "all": self._scene} if whole and folded != self._scene else {"all": folded}
        gradients = {each.target: each.total.short() for each in self.steps}
        self.scenes = {name: with_gradients(scene, gradients) for name, scene in scenes.items()}

    def __repr__(self) -> str:
        return f"<backprop of {len(self.recording.nodes)} nodes, {len(self.steps)} steps>"

    # what is handed over --------------------------------------------------------------------------------------------

    def data(self) -> dict[str, Any]:
        """All that is shown, as plain data."""
        return {
            "about": repr(self),
            "views": [self._view(name, scene) for name, scene in self.scenes.items()],
            "nodes": [self._node(node) for node in self.recording.nodes],
            "steps": [self._made(node) for node in self.recording.nodes if node.op is not None]
            + [self._described(each) for each in self.steps],
            "forward": sum(node.op is not None for node in self.recording.nodes),
            "missing": self.recording.missing,
        }

    def _view(self, name: str, scene: Scene) -> dict[str, Any]:
        """A picture, and which of its boxes and arrows belong to which nodes."""
        box: dict[int, int] = {}
        partner: dict[int, int] = {}
        for key, each in enumerate(scene.boxes):
            for node in each.nodes:
                box[self._number[node]] = key
            if each.mirrors is not None:
                partner[each.mirrors] = key
        gradient = {number: partner[key] for number, key in box.items() if key in partner}
        edges = {(e.source, e.target, e.slot): key for key, e in enumerate(scene.edges)}
        arrows: dict[str, int] = {}
        for node in self.recording.nodes:
            for slot, source in enumerate(node.inputs):
                if not isinstance(source, Node):
                    continue
                a, b = box[self._number[node]], box[self._number[source]]
                seen = 0 if scene.boxes[a].kind == "group" else slot
                arrow = f"{self._number[node]}.{slot}"
                if (b, a, seen) in edges:
                    arrows[f"there {arrow}"] = edges[b, a, seen]
                if (partner.get(a), partner.get(b), seen) in edges:
                    arrows[f"back {arrow}"] = edges[partner[a], partner[b], seen]
        return {"name": name, "svg": draw(scene, self.direction), "box": box, "gradient": gradient, "arrows": arrows}

    def _node(self, node: Node) -> dict[str, Any]:
        value = self.recording.values.get(node)
        summary = None if value is None else Summary.of(value)
        return {
            "name": self._called(node), "type": type_of(node), "line": self._line(node),
            "value": "" if summary is None else summary.short(), "norm": "" if summary is None else summary.size(),
            "leaf": isinstance(node, Leaf), "inputs": [self._number.get(i) for i in node.inputs if isinstance(i, Node)],
        }  # fmt: skip

    def _called(self, node: Node) -> str:
        return self.names.get(node) or ("parameter" if isinstance(node, Leaf) else node.name)

    def _line(self, node: Node) -> dict[str, Any] | None:
        """The line of the user's code that made a node, with those around it."""
        if node.where is None:
            return None
        filename, line = line_of(node.where)
        first = max(1, line - AROUND)
        text = [linecache.getline(filename, n).rstrip("\n") for n in range(first, line + AROUND + 1)]
        return {"file": File(filename).name, "line": line, "first": first, "text": text} if any(text) else None

    def _made(self, node: Node) -> dict[str, Any]:
        """A step forward."""
        given = [self._called(i) if isinstance(i, Node) else str(i) for i in node.inputs]
        say = f"{node.name}({', '.join(given)}) makes {self._called(node)}, {type_of(node)}"
        math = mathml(node.op.formula) if node.op is not None and node.op.formula else ""
        return {"kind": "make", "target": self._number[node], "node": self._number[node], "say": say, "rule": math}

    def _described(self, each: Step) -> dict[str, Any]:
        """A step back."""
        target, node = each.target, each.node
        name = self._called(target)
        plain: dict[str, Any] = {
            "kind": each.kind, "target": self._number[target], "value": each.value.short(), "type": type_of(target),
            "before": None if each.before is None else each.before.short(), "total": each.total.short(),
            "norm": each.total.size(), "sign": each.value.sign(),
        }  # fmt: skip
        if node is None:
            return plain | {"say": f"We start at {name}: its gradient with respect to itself is {each.value.short()}."}
        plain |= {"node": self._number[node], "slot": each.index}
        if each.kind == "sum":
            say = f"{name} is used more than once, so what comes back is added: {plain['before']} + {plain['value']}."
            return plain | {"say": say}
        assert node.op is not None and each.index is not None
        say = f"{self._called(node)} passes back to {name}, {type_of(target)}: {plain['value']}"
        check = each.check
        return plain | {
            "say": say, "rule": mathml(rule_of(node, each.index, self._called)),
            "check": None if check is None else [check.by_rule, check.by_differences, check.agrees],
        }  # fmt: skip

    # how it is shown ------------------------------------------------------------------------------------------------

    def to_html(self) -> str:
        """A page that needs no other file, and no network."""
        return page("step", self.data(), repr(self))

    def to_svg(self) -> str:
        """The whole pass in one picture."""
        return draw(next(iter(self.scenes.values())), self.direction)

    def save(self, path: str | File) -> None:
        """Write a page (.html) or a picture (.svg)."""
        file = File(path)
        forms = {".html": self.to_html, ".svg": self.to_svg}
        if file.suffix not in forms:
            raise MinigradError(f"steps can't be saved as {file.name!r}", expect="a name that ends in .html or .svg")
        file.write_text(forms[file.suffix](), encoding="utf-8")

    def widget(self) -> Any:
        """A widget whose `step` Python can read and set, while the kernel lives."""
        return live("step", self.data())

    def text(self) -> str:
        """The steps in words, one in a line."""
        return "\n".join(f"{i}. {self._described(each)['say']}" for i, each in enumerate(self.steps, 1))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        encoded = base64.b64encode(self.to_svg().encode()).decode()
        listing = f"<details><summary>the steps in words</summary><pre>{escape(self.text())}</pre></details>"
        static = {
            "text/html": f'<img alt="{escape(repr(self))}" src="data:image/svg+xml;base64,{encoded}">{listing}',
            "image/svg+xml": self.to_svg(), "text/plain": repr(self),
        }  # fmt: skip
        return widget("step", self.data(), static)
