"""`mg.viz.step`: a backward pass to step through, in a notebook or on a page.

Everything that can be seen is computed here and handed over as data: what the page does is to show it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..core.node import Leaf, Node, topological_order
from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.errors import MinigradError
from .exhibit import Exhibit
from .folding import BUDGET
from .graphs import MOST, names_of
from .mirror import with_gradients
from .numbers import Summary, short
from .opening import View, views_of
from .rules import formula_of, mathml, plain, rule_of
from .scene import Scene, excerpt, scene_of, type_of
from .steps import Recording, Step, record_steps
from .svg import draw, laid_out, lean

LONGEST = 20_000  # operations: a backward pass of more is not recorded
SEED = 32  # numbers: of a larger gradient to begin with, acting it out shows none


def step(
    result: Tensor, cotangent: Tensor | None = None, *, names: Mapping[str, Tensor] | Module | None = None,
    direction: str = "auto", budget: int = BUDGET,
) -> Stepper:
    """Step through the backward pass of a tensor: what each operation passes back, by which rule, and what is added.

    Nothing is changed: `backward()` can be called before (with `retain_graph=True`) and after.

    >>> w = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> mg.viz.step((w * w).sum())
    <backprop of 3 nodes, 5 steps>
    """
    count = len(topological_order([result.node])) if result.node is not None else 0
    if count > LONGEST:
        raise MinigradError(
            f"a backward pass of {count:,} operations has too many steps to look at",
            expect=f"at most {LONGEST:,}", hint="fewer layers or fewer rounds of a loop show the same",
        )
    return Stepper(record_steps(result, cotangent), result.node, names, direction, budget)


class Stepper(Exhibit):
    """A backward pass that shows itself: in a notebook and in a file as a page, elsewhere as text."""

    script = "step"

    def __init__(
        self, recording: Recording, result: Node, names: Any = None, direction: str = "auto", budget: int = BUDGET
    ) -> None:
        self.recording, self.result, self.direction = recording, result, direction
        self.steps = recording.steps
        self.names = names_of(recording.nodes, names)
        self._number = {node: i for i, node in enumerate(recording.nodes)}
        scene = scene_of(recording.nodes, [result], self.names, values=recording.values)
        self.views = views_of(scene, budget, MOST)
        if len(self.views[0].scene.boxes) > MOST:
            raise MinigradError(
                f"stepping through {len(recording.nodes):,} operations side by side would show nothing",
                hint="with mg.scope('name'): around parts of the computation, or step through a smaller example",
            )
        gradients = {each.target: each.total.short() for each in self.steps}
        self.scenes = [with_gradients(view.scene, gradients) for view in self.views]
        self._tables: dict[tuple[tuple[str, ...], ...], int] = {}

    def __repr__(self) -> str:
        return f"<backprop of {len(self.recording.nodes)} nodes, {len(self.steps)} steps>"

    # what is handed over --------------------------------------------------------------------------------------------

    def data(self) -> dict[str, Any]:
        """All that is shown, as plain data."""
        made = [self._made(node) for node in self.recording.nodes if node.op is not None]
        nodes = [self._node(node) for node in self.recording.nodes]
        steps = made + [self._described(each) for each in self.steps]
        seed = self.recording.seed
        return {
            "about": repr(self),
            "views": [self._view(view, scene) for view, scene in zip(self.views, self.scenes)],
            "nodes": nodes,
            "steps": steps,
            "tables": [list(map(list, table)) for table in self._tables],
            "forward": len(made),
            "seed": [_rounded(x) for x in seed.reshape(-1).tolist()] if seed.size <= SEED else None,
            "missing": self.recording.missing,
        }

    def _view(self, view: View, scene: Scene) -> dict[str, Any]:
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
        doors = dict(view.doors) | {partner[key]: other for key, other in view.doors.items() if key in partner}
        return {
            "svg": lean(draw(scene, self._direction())), "box": box, "gradient": gradient, "arrows": arrows,
            "doors": doors, "exits": {"/".join(path): other for path, other in view.exits.items()},
        }

    def _direction(self) -> str:
        """That of the first view, for all of them."""
        if self.direction == "auto":
            self.direction = laid_out(self.scenes[0])[1]
        return self.direction

    def _node(self, node: Node) -> dict[str, Any]:
        summary = self.recording.values.get(node)
        return {
            "name": self._called(node), "type": type_of(node), "line": excerpt(node), "scope": "/".join(node.scope),
            "value": "" if summary is None else summary.short(), "norm": "" if summary is None else summary.size(),
            "table": self._table(summary), "leaf": isinstance(node, Leaf),
            "inputs": [self._number.get(i) for i in node.inputs if isinstance(i, Node)],
        }

    def _table(self, summary: Summary | None) -> int | None:
        """The number of the table that shows the corner of a tensor."""
        if summary is None or not summary.corner:
            return None
        return self._tables.setdefault(summary.corner, len(self._tables))

    def _called(self, node: Node) -> str:
        return self.names.get(node) or ("parameter" if isinstance(node, Leaf) else node.name)

    def _names(self) -> set[str]:
        """What the user calls a value of the picture: no letter of a formula may be taken for it."""
        return set(self.names.values())

    def _made(self, node: Node) -> dict[str, Any]:
        """A step forward."""
        given = [self._called(i) if isinstance(i, Node) else str(i) for i in node.inputs]
        name = self._called(node)
        say = f"{node.name}({', '.join(given)}) makes {name if name != node.name else 'this'}, {type_of(node)}"
        math = mathml(formula_of(node, self._called, self._names())) if node.op is not None and node.op.formula else ""
        return {"kind": "make", "target": self._number[node], "node": self._number[node], "say": say, "rule": math}

    def _described(self, each: Step) -> dict[str, Any]:
        """A step back."""
        target, node = each.target, each.node
        name = self._called(target)
        about: dict[str, Any] = {
            "kind": each.kind, "target": self._number[target], "value": each.value.short(), "type": type_of(target),
            "before": None if each.before is None else each.before.short(), "total": each.total.short(),
            "norm": each.total.size(), "sign": each.value.sign(), "few": _numbers(each.value),
            "tables": [self._table(each.value), self._table(each.before), self._table(each.total)],
        }
        if node is None:
            return about | {"say": f"We start at {name}: its gradient with respect to itself is {each.value.short()}."}
        about |= {"node": self._number[node], "slot": each.index}
        if each.kind == "sum":
            say = f"{name} is used more than once, so what comes back is added: {about['before']} + {about['value']}."
            return about | {"say": say}
        assert node.op is not None and each.index is not None
        check = each.check
        return about | {
            "say": f"{self._called(node)} passes back to {name}, {type_of(target)}: {about['value']}",
            "rule": mathml(rule_of(node, each.index, self._called, self._names())),
            "check": None if check is None else [*map(short, check[:4]), check.agrees, check.kink],
            "needs": [self._number[other] for other in each.needs if other in self._number],
            "matrix": None if each.matrix is None else [[_rounded(x) for x in row] for row in each.matrix.tolist()],
        }

    # how it is shown ------------------------------------------------------------------------------------------------

    def to_svg(self) -> str:
        """The whole pass in one picture."""
        return draw(self.scenes[0], self._direction())

    def text(self) -> str:
        """The steps in words, one in a line, with their rules."""
        lines = []
        for i, each in enumerate(self.steps, 1):
            line = f"{i}. {self._described(each)['say']}"
            if each.kind == "pass" and each.node is not None and each.index is not None:
                line += f"    by {plain(rule_of(each.node, each.index, self._called, self._names()))}"
            lines.append(line)
        return "\n".join(lines)

    def _plain(self) -> str:
        return repr(self)


def _numbers(summary: Summary) -> list[Any] | None:
    """The numbers of a small tensor, which somebody may want to predict."""
    return None if summary.few is None else [_rounded(x) for x in summary.few]


def _rounded(number: Any) -> float | None:
    """A number with six digits; there is no other way to write nan in JSON than not to."""
    return float(f"{number:.6g}") if math.isfinite(number) else None
