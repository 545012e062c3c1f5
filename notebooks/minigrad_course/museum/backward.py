"""Pictures of backward passes: the order, accumulation, freed values, cut arrows, leaves, and a branch not taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import optim
from minigrad.core.tensor import Tensor
from minigrad.ops.creation import asarray, ones
from minigrad.ops.elementwise import sqrt, tanh, where
from minigrad.support.errors import GradError
from minigrad.viz.drawing import Axes, Drawing
from minigrad.viz.numbers import short

from ..counting import kept_bytes
from ..feedback import Wrong, written
from ..graphs import sources_of
from ..source_code import run_code
from ..tasks import mistake
from .broken_picture import BrokenCode, BrokenNames, BrokenPicture, Thread
from .drawn import WIDE, Plan, table

GRAPH = {"a": ("multiply", 2, "x"), "b": ("multiply", "a", "a"), "c": ("add", "a", "b"), "y": ("multiply", "b", "c")}
NUMBERED = ("1st", "2nd", "3rd", "4th")
SLOPES = {("a", "x"): 2.0, ("b", "a"): 4.0, ("c", "a"): 1.0, ("c", "b"): 1.0, ("y", "b"): 6.0, ("y", "c"): 4.0}


class VisitingOrder(BrokenPicture):
    """A reader of a small engine asks why its backward pass sorts the nodes. Could each node not call its inputs at
    once, as a recursive function does?"""

    name = "visiting_order"
    thread = Thread("Noob question about backprop implementation", "https://github.com/karpathy/micrograd/issues/21")
    taught_in = ("06_reverse_mode",)
    code = "a = 2 * x        # x is 1\nb = a * a\nc = a + b\ny = b * c\ny.backward()"
    broken = ["y", "b", "a", "c"]

    def read(self, answer: Any) -> Any:
        names = answer.replace(",", " ").split() if isinstance(answer, str) else list(answer)
        return names[:-1] if names[-1:] == ["x"] else names  # x sends nothing

    def other_form(self, answer: Any) -> str | None:
        right = isinstance(answer, list | tuple | str) and sorted(self.read(answer)) == sorted(GRAPH)
        return None if right else f"the names a, b, c and y, each once, in order: {self.broken}"

    def right(self) -> list[str]:
        """The order of the library's own walk, from the latest node to the first."""
        return sorted(GRAPH, key=list(GRAPH).index, reverse=True)

    def is_right(self, value: list[str]) -> bool:
        return not self.passed_back(value)[1]

    def passed_back(self, order: list[str]) -> tuple[dict[str, float], list[str]]:
        """The gradients after a backward pass in this order, and the nodes that got something after they had sent."""
        gradients, sent, late = {"y": 1.0}, [], []
        for name in order:
            sent.append(name)
            for source in sources_of(GRAPH, name):
                slope = SLOPES[name, source] / sources_of(GRAPH, name).count(source)
                gradients[source] = gradients.get(source, 0.0) + slope * gradients.get(name, 0.0)
                late += [source] if source in sent else []
        return gradients, sorted(set(late))

    def draw(self, value: list[str]) -> Plan:
        gradients, late = self.passed_back(value)
        plan = Plan(190)
        places = {"y": (60, 95), "c": (205, 40), "b": (330, 150), "a": (455, 95), "x": (570, 95)}
        for name, (x, y) in places.items():
            order = f"sends {NUMBERED[value.index(name)]}" if name in value else ""
            look = "given" if name == "x" else "wrong" if name in late else "plain"
            plan.box(name, x, y, f"∂{name} = {short(gradients.get(name, 0.0))}", *filter(None, [order]), look=look)
        for user, source in (("y", "b"), ("y", "c"), ("c", "b"), ("c", "a"), ("b", "a"), ("a", "x")):
            lost = source in late and value.index(user) > value.index(source)
            plan.link(user, source, "lost" if lost else "", "bad" if lost else "back", dashes="5 4" if lost else "")
        return plan


class ClearGradients(BrokenCode):
    """A reader of a tutorial asks why the gradients are set to zero before each backward pass. The update uses the
    gradients, so why throw them away?"""

    name = "clear_gradients"
    thread = Thread("Why making gradients zero before backward pass?",
                    "https://github.com/jcjohnson/pytorch-examples/issues/31")
    taught_in = ("08_training", "06_reverse_mode")
    code = (
        "def clear_gradients(loss_of, optimizer):\n    for _ in range(20):\n        loss = loss_of()\n"
        "        loss.backward()\n        optimizer.step()\n"
    )

    def shown(self, answer: Callable[..., Any]) -> list[float]:
        """The losses that the function computes."""
        w = asarray(0.0, requires_grad=True)
        losses: list[float] = []

        def loss_of() -> Tensor:
            loss = (w - 3.0) ** 2
            losses.append(round(float(loss.item()), 5))
            return loss

        answer(loss_of, optim.SGD([w], lr=0.1))
        return losses

    def solution(self) -> Callable[..., Any]:
        return self.written_as(self.code.replace("        loss = ", "        optimizer.zero_grad()\n        loss = "))

    def draw(self, value: list[float]) -> Drawing:
        drawing = Drawing(WIDE, 210)
        losses, steps = value or [0.0], max(len(value), 2)
        axes = Axes(drawing, (0, 0, WIDE, 190), (1.0, float(steps)), (0.0, max(9.5, *losses)))
        ideal = [(i + 1.0, 9.0 * 0.64**i) for i in range(steps)]
        axes.curve(ideal, "quiet", dashes="5 4")
        axes.curve([(i + 1.0, loss) for i, loss in enumerate(losses)], "there", thick=2.6)
        drawing.text(WIDE, 208, "loss of each step; dashed: as it should be", size=13, anchor="end", fill="quiet")
        return drawing

    @mistake
    def before_step(self, loss_of: Any, optimizer: Any) -> None:
        for _ in range(20):
            loss_of().backward()
            optimizer.zero_grad()
            optimizer.step()

    @mistake
    def one_step(self, loss_of: Any, optimizer: Any) -> None:
        loss_of().backward()
        optimizer.step()


class KeepFlags(BrokenPicture):
    """Two losses share one part of a network. The first backward() works, and the second one stops. A user asks
    what is different."""

    name = "keep_flags"
    thread = Thread("Unable to backward two losses", "https://github.com/pytorch/xla/issues/1961")
    taught_in = ("06_reverse_mode", "07_forward_and_memory")
    code = (
        "h = mg.tanh(w * 2)          # tanh keeps its output: 1,000 numbers, 4 kB\n"
        "losses = h.sum(), (h * 2).sum(), (h * 3).sum()\n"
        "for loss, flag in zip(losses, keep_flags):\n    loss.backward(retain_graph=flag)"
    )
    broken = [False, False, False]

    def read(self, answer: Any) -> list[bool]:
        return [bool(flag) for flag in answer]

    def is_right(self, value: list[bool]) -> bool:
        calls = self.calls(value)
        return all(ran for ran, _ in calls) and not calls[-1][1]

    def calls(self, flags: list[bool]) -> list[tuple[bool, int]]:
        """For each call, in the library: whether it runs, and the bytes that are kept after it."""
        h = tanh(ones(1000, requires_grad=True) * 2)
        found = []
        for factor, flag in enumerate(flags, 1):
            loss = (h * factor).sum()
            try:
                loss.backward(retain_graph=flag)
                found.append((True, kept_bytes(h)))
            except GradError:
                found.append((False, kept_bytes(h)))
        return found

    def draw(self, value: list[bool]) -> Drawing:
        calls = self.calls(value)
        rows = {
            f"call {i}": (str(flag), "runs" if ran else "stops", f"{kept // 1000} kB")
            for i, (flag, (ran, kept)) in enumerate(zip(value, calls), 1)
        }
        wrong = [(i, 1) for i, (ran, _) in enumerate(calls) if not ran]
        lit = [(i, 1) for i, (ran, _) in enumerate(calls) if ran]
        lit += [(i, 2) for i, (_, kept) in enumerate(calls) if kept]
        wrong += [(2, 2)] if calls[-1][1] else []
        return table(("retain_graph", "backward()", "kept after it"), rows, wrong, lit, first=80)


ARROWS = {"A": ("w", "h"), "B": ("h", "d"), "C": ("w", "k"), "D": ("h", "p"), "E": ("d", "p"), "F": ("p", "y"),
          "G": ("k", "y")}


class CarryingArrows(BrokenNames):
    """`detach()` and `no_grad()` both stop gradients. Where exactly is the difference, a user asks: which part of the
    graph is cut?"""

    name = "carrying_arrows"
    thread = Thread("Difference between detach() and with torch.no_grad() in PyTorch",
                    "https://stackoverflow.com/questions/56816241/difference-between-detach-and-with-torch-nograd-in-pytorch")
    taught_in = ("04_graphs", "06_reverse_mode")
    code = (
        "h = w * x              # arrow A; w is 3, x is 2\nd = h.detach()         # arrow B\nwith mg.no_grad():\n"
        "    k = w + 1          # arrow C\np = h * d              # arrows D and E\ny = p + k              # "
        "arrows F and G\n"
        "y.backward()"
    )
    names = tuple(ARROWS)
    broken = ["A", "B", "C", "D", "E", "F", "G"]

    def right(self) -> list[str]:
        """The arrows between tensors that the library has recorded."""
        tensors = self.tensors()
        return [letter for letter, ends in ARROWS.items() if all(tensors[end].requires_grad for end in ends)]

    def tensors(self) -> dict[str, Tensor]:
        """The program, run in the library."""
        names: dict[str, Any] = {"w": asarray(3.0, requires_grad=True), "x": 2.0}
        run_code(f"import minigrad as mg\n{self.code}", names)
        return {name: names[name] for name in "whdkpy"}

    def gradient(self, letters: list[str]) -> float:
        """∂w along these arrows."""
        slopes = {"A": 2.0, "B": 1.0, "C": 1.0, "D": 6.0, "E": 6.0, "F": 1.0, "G": 1.0}

        def back(name: str) -> float:
            if name == "y":
                return 1.0
            out = [(letter, target) for letter, (source, target) in ARROWS.items() if source == name]
            return sum(slopes[letter] * back(target) for letter, target in out if letter in letters)

        return back("w")

    def problem(self, value: list[str]) -> str:
        found, arrows = short(self.gradient(value)), ", ".join(value) or "of no letter"
        return f"with the arrows {arrows} ∂w is {found}, {'by another way' if found == '12' else 'not 12'}"

    def draw(self, value: list[str]) -> Plan:
        plan = Plan(210)
        places = {"w": (60, 100), "h": (200, 45), "d": (330, 100), "k": (330, 180), "p": (450, 45), "y": (570, 100)}
        values = {"w": 3, "h": 6, "d": 6, "k": 4, "p": 36, "y": 40}
        for name, (x, y) in places.items():
            lines = (f"∂w = {short(self.gradient(value))}",) if name == "w" else (f"{values[name]}",)
            plan.box(name, x, y, *lines, look="given" if name == "w" else "plain", width=92 if name == "w" else 64)
        for letter, (source, target) in ARROWS.items():
            carries = letter in value
            plan.link(target, source, letter, "back" if carries else "line", dashes="" if carries else "4 5")
        return plan


class MakeWeights(BrokenCode):
    """A tensor requires a gradient and is moved or scaled in the same line. After backward() its `.grad` is None. A
    user reports a bug."""

    name = "make_weights"
    thread = Thread("Failure to acquire gradient with requires_grad", "https://github.com/pytorch/pytorch/issues/8287")
    taught_in = ("04_graphs", "06_reverse_mode")
    code = "def make_weights():\n    w = mg.ones(3, requires_grad=True) * 0.1\n    return w\n"

    def shown(self, answer: Callable[..., Any]) -> dict[str, Any]:
        w = answer()
        if not isinstance(w, Tensor):
            raise Wrong(self.name, f"your function returns {written(w)}", "a tensor: the last line is `return w`")
        leaf, values = bool(w.is_leaf), written(w)
        try:
            (w * asarray([1.0, 2.0, 3.0])).sum().backward()
        except GradError:
            return {"values": values, "leaf": leaf, "gradient": "no graph"}
        return {"values": values, "leaf": leaf, "gradient": written(w.grad) if w.grad is not None else "None"}

    def solution(self) -> Callable[..., Any]:
        return self.written_as("def make_weights():\n    return mg.full(3, 0.1, requires_grad=True)\n")

    def problem(self, value: dict[str, Any]) -> str:
        return f"w is {value['values']} and {'' if value['leaf'] else 'not '}a leaf, and w.grad is {value['gradient']}"

    def draw(self, value: dict[str, Any]) -> Plan:
        plan = Plan(110)
        if value["leaf"]:
            plan.box("w", 200, 55, value["values"], f"w.grad = {value['gradient']}", look="given", width=220)
        else:
            plan.box("no name", 70, 55, "[1.0, 1.0, 1.0]", look="given", width=130)
            plan.box("w", 290, 55, value["values"], f"w.grad = {value['gradient']}", look="wrong", width=220)
            plan.link("w", "no name", colour="back")
        plan.box("loss", 560, 55, width=70)
        if value["gradient"] != "no graph":
            plan.link("loss", "w", colour="back")
        return plan

    @mistake
    def detached(self) -> Tensor:
        return (ones(3, requires_grad=True) * 0.1).detach()

    @mistake
    def not_scaled(self) -> Tensor:
        return ones(3, requires_grad=True)

    @mistake
    def retained(self) -> Tensor:
        w = ones(3, requires_grad=True) * 0.1
        w.retain_grad()
        return w


POINTS = (-4.0, 0.0, 0.25, 4.0)


class Root(BrokenCode):
    """`where` chooses x for small x and the root for large x. Its value is right everywhere, and its gradient at 0 is
    NaN, although the root is not chosen there. A user asks why."""

    name = "root"
    thread = Thread("nan when using np.where and grad", "https://github.com/jax-ml/jax/issues/5798")
    taught_in = ("05_gradient_functions",)
    code = "def root(x):\n    return mg.where(x < 1.0, x, mg.sqrt(x))\n"

    @np.errstate(all="ignore")
    def shown(self, answer: Callable[..., Any]) -> dict[str, list[float]]:
        x = asarray(list(POINTS), requires_grad=True)
        y = answer(x)
        if not isinstance(y, Tensor):
            raise Wrong(self.name, f"your function returns {written(y)}", "a tensor: begin the last line with `return`")
        y.sum().backward()
        gradient = x.grad.tolist() if x.grad is not None else [0.0] * len(POINTS)
        return {"values": np.round(y.detach().numpy(), 5).tolist(), "gradient": np.round(gradient, 5).tolist()}

    def solution(self) -> Callable[..., Any]:
        return self.written_as(
            "def root(x):\n    safe = mg.where(x < 1.0, 1.0, x)\n    return mg.where(x < 1.0, x, mg.sqrt(safe))\n")

    def draw(self, value: dict[str, list[float]]) -> Drawing:
        rows = {"root(x)": [short(each) for each in value["values"]], "x.grad": [short(g) for g in value["gradient"]]}
        wrong = [(1, i) for i, each in enumerate(value["gradient"]) if not np.isfinite(each)]
        wrong += [(0, i) for i, (a, b) in enumerate(zip(value["values"], (-4.0, 0.0, 0.25, 2.0))) if abs(a - b) > 1e-3]
        return table([f"x = {short(x)}" for x in POINTS], rows, wrong, [divmod(i, 4) for i in range(8)], first=90)

    @mistake
    def shifted(self, x: Tensor) -> Tensor:
        return where(x < 1.0, x, sqrt(x + 1e-9))

    @mistake
    def only_inside(self, x: Tensor) -> Tensor:
        return sqrt(where(x < 1.0, 1.0, x))

    @mistake
    def absolute(self, x: Tensor) -> Tensor:
        return where(x < 1.0, x.detach(), sqrt(where(x < 1.0, 1.0, x)))
