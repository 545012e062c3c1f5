"""`mg.viz.step`: a backward pass to step through, in a notebook or on a page.

Everything that can be seen is computed here and handed over as data; the page shows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ..autodiff.visits import HOOKS
from ..core.node import Node
from ..core.tensor import Tensor
from .exhibit import Data, Exhibit
from .graphs import check_boxes, check_length, known_of
from .live import live_of, runs
from .mirror import flowing, with_gradients
from .models import paths_in
from .notation import gradient_of
from .numbers import Summary
from .opening import BoxNames, Part, folded
from .rules import formula_of, mathml, plain, rule_of, rule_with_numbers
from .scene import Scene, excerpt, scene_of, type_of
from .steps import Recording, Step, record_steps, recorded_order
from .svg import draw, laid_out, lean

LONGEST = 20_000  # operations: a backward pass of more is not recorded
Arrows = dict[tuple[Any, Any], tuple[int, int]]  # of an input of a node: the one forward and the one back, or -1
SEEN = 12  # boxes at first, as far as there are scopes to close: as many gradients stand beside them


def step(
    result: Tensor, cotangent: Tensor | None = None, *, names: Mapping[str, Tensor] | None = None,
    budget: int = SEEN,
) -> Stepper:
    """Step through the backward pass of a tensor: what each operation passes back, by which rule, and what is added.

    The numbers of a small pass can be dragged: those of parameters, and of data that have a name where all other data
    of the pass have one too.  What the recorded operations make of them follows; other data, what was detached, and
    what Python chose stay as they are.  Data without a name may have been computed from any other: then no data can be
    dragged, and the page says why.

    Scopes are closed until at most `budget` boxes are seen.  Nothing is changed: `backward()` can be called before
    (with `retain_graph=True`) and after.

    >>> w = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> mg.viz.step((w * w).sum())
    <backprop of 3 nodes, 5 steps>
    """
    if result.node is not None:
        check_length(len(recorded_order([result.node])), LONGEST)
    return Stepper(record_steps(result, cotangent), names, budget)


class Stepper(Exhibit):
    """A backward pass that shows itself: in a notebook and in a file as a page, elsewhere as text."""

    wordy = False
    script = "step"

    def __init__(self, recording: Recording, names: Any, budget: int) -> None:
        self.recording, self.steps = recording, recording.steps
        self.nodes = nodes = recording.nodes
        self.title = f"backprop of {len(nodes)} nodes, {len(self.steps)} steps"
        self.result = nodes[-1]
        self.names, models = known_of(nodes, names)
        self._number = {node: i for i, node in enumerate(nodes)}
        scene = scene_of(nodes, [self.result], self.names, recording.values, {*paths_in(models).values()})
        self.parts = folded(scene, budget)
        self._called = BoxNames([*self.parts, Part(scene, "", 0, {})])
        check_boxes(self.parts[0].scene)
        self.totals = {each.target: each.total for each in self.steps}
        self.live = live_of(recording, self.names)
        self._single = {node: x.few[0] for node, x in recording.values.items() if x.shape == () and x.few}
        self._in_page = {node: marked(self.live.registers.get(node), x) for node, x in self._single.items()}
        wanted = flowing(nodes)
        self.scenes = [with_gradients(part.scene, self.totals, wanted) for part in self.parts]

    def named(self) -> str:
        """The title of a saved page."""
        return f"Backprop of {self._called.of(self.result)}"

    # what is handed over --------------------------------------------------------------------------------------------

    def data(self) -> Data:
        """All that is shown, as plain data."""
        return {
            "about": self.said(),
            "scopes": [self._part(part, scene) for part, scene in zip(self.parts, self.scenes)],
            "nodes": [*map(self._node, self.recording.nodes)],
            "steps": [self._described(i, each) for i, each in enumerate(self.steps)],
            "live": {**self.live.tape, "why": self.live.why},
            "missing": self.recording.missing.splitlines()[:1],
        }

    def _part(self, part: Part, scene: Scene) -> Data:
        """A picture: the nodes of each box, the node that it shows, and which arrows belong to which inputs."""
        arrows = self._arrows(scene)
        return {
            "svg": lean(draw(scene, self._notes(self._along(arrows)))),
            "title": part.title, "parent": part.parent, "doors": part.doors,
            "boxes": [runs(sorted(self._number[node] for node in box.nodes)) for box in part.scene.boxes],
            "shown": [self._number[box.shown] for box in part.scene.boxes if box.shown is not None],
            "holds": {
                i: ": ".join(filter(None, box.about[:2]))
                for i, box in enumerate(part.scene.boxes) if box.path is not None
            },
            "results": {
                i: [self._number[node] for _, node in box.results]
                for i, box in enumerate(part.scene.boxes) if box.results
            },
            "mirrors": [box.mirrors for box in scene.boxes if box.mirrors is not None],
            "arrows": [x for (node, slot), pair in arrows.items() for x in (self._number.get(node), slot, *pair)],
        }

    def _along(self, arrows: Arrows) -> list[int]:
        """The arrow of the backward pass that each step is about; -1 inside a box, and where this picture has none."""
        return [arrows.get((each.node, each.index), (-1, -1))[1] for each in self.steps]

    def _notes(self, along: list[int]) -> dict[int, tuple[str, str]]:
        """What has come along each arrow of the backward pass in the end."""
        came: dict[int, list[Summary]] = {}
        for each, edge in zip(self.steps, along):
            if each.kind != "sum" and edge >= 0:
                came.setdefault(edge, []).append(each.value)
        return {
            edge: (f"{1 + len(rest)} contributions", "") if rest else (value.in_words(), value.cells)
            for edge, (value, *rest) in came.items()
        }

    def _arrows(self, scene: Scene) -> Arrows:
        """The arrows of each input of a node, forward and backward, and of the first step; -1 where there is none."""
        box = {node: key for key, each in enumerate(scene.boxes) for node in each.nodes}
        partner = {each.mirrors: key for key, each in enumerate(scene.boxes)}
        edges: dict[Any, int] = {edge: key for key, edge in enumerate(scene.edges)}
        result = box.get(self.result)
        found: Arrows = {(None, None): (-1, edges.get((result, partner.get(result), 0), -1))}
        for node, a in box.items():
            for slot, source in enumerate(node.inputs):
                b = box.get(source, a) if isinstance(source, Node) else a
                if b != a:
                    seen = 0 if scene.boxes[a].path is not None else slot
                    forth, back = (b, a, seen), (partner.get(a), partner.get(b), seen)
                    found[node, slot] = edges.get(forth, -1), edges.get(back, -1)
        return found

    def _node(self, node: Node) -> Data:
        name = self._called.of(node)
        found: Data = {
            "name": name, "back": gradient_of(name), "type": type_of(node), "line": excerpt(node.where),
        }
        if node.op is not None:
            found["inputs"] = [self._number.get(each, -1) for each in node.inputs]
            found["rule"] = mathml(formula_of(node, self._called.seen_from(node), self._in_page))
        return found | _shown(value=self.recording.values.get(node), gradient=self.totals.get(node))

    def _rule(self, i: int, in_page: bool = False) -> tuple[str, str]:
        """LaTeX of the rule of step `i`, and of the numbers in it, where they are single: `in_page`, with marks."""
        each = self.steps[i]
        assert each.node is not None and each.index is not None
        rule = rule_of(each.node, each.index, self._called.seen_from(each.node))
        g, value = self.totals[each.node], each.value
        if g.shape != () or value.shape != () or each.node in HOOKS:
            return rule, ""
        given, made = g.few[0], value.few[0]  # type: ignore[index]  # a number is always among few
        if in_page and self.live.leaves:
            given, made = map(marked, self.live.tape["steps"][i], (given, made))
        return rule, rule_with_numbers(each.node, each.index, self._in_page if in_page else self._single, given, made)

    def _described(self, i: int, each: Step) -> Data:
        """A step of the backward pass."""
        about: Data = {"kind": each.kind, "target": self._number[each.target], "say": self._sentence(each)}
        if each.node is not None:
            about |= {"node": self._number[each.node], "slot": each.index}
        about |= _shown(value=each.value, before=each.before, total=each.total if each.kind == "sum" else None)
        few = each.value.few
        about["few"] = few and [*map(_rounded, few)]
        if each.kind != "pass":
            return about
        rule, counted = self._rule(i, in_page=True)
        if counted:  # apart, because predicting hides it
            about["counted"] = mathml(counted)
        return about | {
            "rule": mathml(rule), "check": each.check,
            "needs": [self._number[x] for x in each.needs if x in self._number],
            "matrix": each.matrix and [[*map(_rounded, row)] for row in each.matrix],
        }

    def _sentence(self, each: Step) -> str:
        """A step in words, without its numbers."""
        if each.node is None:
            return f"We start at {self._called.of(each.target)}: its gradient with respect to itself is "
        called = self._called.seen_from(each.node)
        if each.kind == "sum":
            return f"{called(each.target)} is used more than once, so its contributions are added"
        name, hooks = called(each.node), each.node in HOOKS
        return f"{f'After the hooks of {name}, it' if hooks else name} passes back to {called(each.target)}: "

    def _said(self, each: Step) -> str:
        """A step in words and numbers."""
        words, line = self._sentence(each), each.value.in_words()
        if each.kind != "sum" or each.before is None:
            return words + line + ("." if each.node is None else "")
        added = f"({line})" if line.startswith("−") else line
        return words + (f": {each.before.line()} + {added}." if each.value.few is not None else ".")

    # how it is shown ------------------------------------------------------------------------------------------------

    def to_svg(self) -> str:
        """The whole pass in one picture."""
        scene = self.scenes[0]
        return draw(scene, self._notes(self._along(self._arrows(scene))))

    def frames(self) -> Iterator[tuple[str, str]]:
        """The first picture whenever all has come along an arrow, with the sentence of the step."""
        whole, wanted = self.scenes[0], flowing(self.recording.nodes)
        along, layout = self._along(self._arrows(whole)), laid_out(whole)
        notes, last = self._notes(along), {edge: done for done, edge in enumerate(along, 1) if edge >= 0}
        for done in [0, *sorted(last.values())]:
            totals = {each.target: each.total for each in self.steps[:done]}
            scene = with_gradients(self.parts[0].scene, totals, wanted)
            begun = f"The forward pass computes {self._called.of(self.result)}."
            says = self._said(self.steps[done - 1]) if done else begun
            arrow = whole.edges[along[done - 1]][:2] if done > 1 else ()
            ends = [whole.boxes[whole.boxes[end].mirrors or 0] for end in arrow]
            if any(len(box.nodes) > 1 for box in ends):  # closed: its arrow may have more than one step
                says = f"{' passes back to '.join([box.called for box in ends])}: {notes[along[done - 1]][0]}"
            seen = {key: note for key, note in notes.items() if last[key] <= done}
            yield draw(scene, seen, layout), says

    def in_words(self) -> str:
        """The steps in words, one in a line, with their rules."""
        lines = []
        for i, each in enumerate(self.steps, 1):
            by = f"    by {plain(' '.join(self._rule(i - 1)).strip())}" if each.kind == "pass" else ""
            lines.append(f"{i}. {self._said(each)}{by}")
        return "\n".join(lines)


def marked(register: int | None, number: Any) -> Any:
    """A mark in a formula where the page puts in what is in a register; the number itself, if it does not change."""
    return number if register is None or register < 0 else f"\\text{{\ue000{register}\ue001}}"


def _shown(**summaries: Summary | None) -> Data:
    """What the page shows of tensors: a line, a line with their range, their heat maps, their first numbers."""
    return {name: [x.line(), x.short(), x.cells, x.corner] for name, x in summaries.items() if x is not None}


def _rounded(number: Any) -> float | None:
    """A number with six digits; JSON has no way to write nan."""
    return float(f"{number:.6g}") if math.isfinite(number) else None
