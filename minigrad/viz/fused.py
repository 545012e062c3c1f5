"""`mg.viz.fusion`: how the compiler transforms a function, stage by stage, into kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from ..compile.fusion.by_hand import Finish, Member, divided, members_of
from ..compile.fusion.count import Count
from ..compile.fusion.group import Group
from ..compile.fusion.kinds import UserKernel
from ..compile.jitted import Jitted, JittedMethod
from ..compile.look.cost import Cost, KernelCost
from ..compile.look.record import Record, record_node_by_node
from ..compile.nodes.graph import Graph
from ..compile.running.program import Program
from ..core.node import Node
from ..support.errors import MinigradError
from ..support.table import as_table, bytes_text, counted, time_text
from .compiled import Shown, eager_record_of, jitted_once, programs_of, records_of, view_of
from .exhibit import Exhibit
from .folding import BUDGET, Outline, fold
from .graphs import MOST
from .kernels import Picked, plain_lines, scene_of_kernels, source_of
from .listings import Listing, values_of
from .moving import tables
from .opening import View, frames_of, views_of
from .scene import Scene, excerpt, type_of
from .svg import draw, laid_out, lean
from .written import Written, written_of

OVERVIEW = 26  # boxes of the first picture of a program in phases
DRAWN = 300  # boxes in all pictures that opening and closing kernels leads to


def fusion(what: Any, *args: Any, measure: bool = False, budget: int = BUDGET, **kwargs: Any) -> Fusion:
    """Show how the compiler transforms a function for these arguments.

    One page steps through the stages of the compiler: your lines as eager mode runs them, the recorded graph, each
    pass, the kernels, their loops, and a second call.  Another page shows the kernels, each a frame with its source and
    the bytes that it reads and writes.  Each arrow between kernels says why they were not fused.  Operations can be
    moved between kernels, in the notebook or with `.move(...)`.  With `measure=True` the function also runs several
    times, eagerly, node by node and fused, with all its side effects, and the table has the quickest times.

    >>> mg.viz.fusion(lambda x, w: mg.softmax(mg.tanh(x @ w) * 2), mg.ones((64, 32)), mg.ones((32, 32)))
    <fusion of 9 operations: 2 launches instead of 9, 36.9 kB instead of 120 kB>
    """
    what = jitted_once(what)
    if measure and isinstance(what, (Graph, Program)):
        raise MinigradError(
            f"fusion: a {type(what).__name__} alone has no arguments to be measured with",
            hint="mg.viz.fusion(f, *arguments, measure=True)",
        )
    shown = programs_of(what, args, kwargs, "fusion")
    seconds: list[dict[str, float]] = [{} for _ in shown]
    records: list[Record] = []
    alone: list[Record] = []
    eager = None
    if measure and isinstance(what, (Jitted, JittedMethod)):
        eager = eager_record_of(what, args, kwargs, len(shown) > 1)
        alone = [record_node_by_node(each.program.graph, each.given()) for each in shown]
        seconds = [{"as you wrote it": record.seconds} for record in alone]
    if measure:  # the programs last: loops count the rounds of their last run
        records = records_of(what, args, kwargs)
        seconds = [some | {"fused": record.seconds} for some, record in zip(seconds, records)]
        shown = programs_of(what, args, kwargs, "fusion")  # which the calls may have traced again
    timed = dict(zip([each.program for each in shown], seconds))
    shown = [each for each in shown if each is shown[0] or each.program.plan.steps]  # without steps, nothing to fuse

    def view_with_picture(each: Shown) -> Fusion:
        found = Fusion(each, budget, timed[each.program])
        ran = dict(zip([record.program for record in records], alone)).get(each.program)
        found.written = written_of(each, records, eager if each is shown[0] else None, ran)
        return found

    view = view_of(shown, view_with_picture)
    view.eager = eager
    return view


class Fusion(Exhibit):
    """The stages and the kernels of a program."""

    script = "fusion"
    eager: Record | None = None  # of the function in eager mode and of its gradient, if they were measured
    written: Written | None = None  # the first page

    def __init__(self, shown: Shown, budget: int = BUDGET, seconds: Mapping[str, float] = {}) -> None:
        self.shown, self.budget, self.seconds = shown, budget, seconds
        self.program, self.partition, self.inputs = shown.program, shown.program.partition, shown.names
        if not self.partition.groups:
            raise MinigradError(
                "nothing is computed here: every result is an argument, or a view of one",
                hint="mg.viz.graph(f, *arguments) draws what was traced",
            )
        self.cost = Cost(self.program)
        self.names = {**self.partition.graph.names(), **self.inputs}
        self.picked: Picked = scene_of_kernels(self.partition, self.inputs)
        self.outline = Outline(self.picked.scene)
        # An input is drawn in each kernel that reads it, and does not count, if kernels are not in modules.
        flat = all(len(box.scope) < 2 for box in self.picked.scene.boxes)
        inputs = sum(place.group is None for place in self.picked.places)
        self.room = budget + inputs if flat else min(budget, OVERVIEW)
        if len(fold(self.picked.scene, self.room).boxes) > MOST:
            raise MinigradError(
                f"a picture of {len(self.partition.groups):,} kernels and library calls would be unreadable",
                expect=f"at most {MOST}", hint="a smaller example: one layer, or one step",
            )

    def said(self) -> str:
        """The launches and bytes before and after fusion."""
        before, after = self.cost.eager, self.cost.program
        operations = sum(node.op is not None and node.op.kind != "view" for node in self.program.graph.nodes)
        return (
            f"fusion of {counted(operations, 'operation')}: {counted(after.launches, 'launch', 'launches')} "
            f"instead of {before.launches}, "
            f"{bytes_text(after.bytes)} instead of {bytes_text(before.bytes)}"
        )

    # moving ---------------------------------------------------------------------------------------------------------

    def move(self, what: str, to: str = "", copy: bool = False) -> Fusion:
        """Move an operation, or a whole kernel, to another kernel (`to=""`: to a new kernel), and show the result.

        With `copy`, both kernels compute it.  A move that is not possible raises an error with the reason.

        >>> view = mg.viz.fusion(lambda x: mg.tanh(x) * 2, mg.ones(1000))
        >>> view.move("multiply_1")
        <fusion of 2 operations: 2 launches instead of 2, 16 kB instead of 16 kB>
        """
        kernels = {group.name: kernel for group, kernel in zip(self.partition.groups, members_of(self.partition))}
        if to and to not in kernels:
            raise MinigradError(f"there is no kernel named {to!r}", expect="one of " + ", ".join(kernels))
        moving = kernels[what] if what in kernels else self._members(what)
        if not copy:
            kernels = {name: [m for m in kernel if m not in moving] for name, kernel in kernels.items()}
        kernels[to] = [*kernels.get(to, ()), *[m for m in moving if m not in kernels.get(to, ())]]
        program = self._program([*kernels.values()])
        moved = Fusion(self.shown._replace(program=program), self.budget)
        return moved.titled(self.heading, self.gradient)

    def _members(self, name: str) -> list[Member]:
        found: list[Member] = [node for node, known in self.names.items() if known == name and node in self._computed]
        finishes = [node for group in self.partition.groups for node in group.finishes]
        found += [Finish(node) for node in finishes if f"{self.names[node]}, combined" == name]
        if not found:
            known = ", ".join(self.names[node] for node in self._computed)
            raise MinigradError(f"no kernel computes anything named {name!r}", expect=f"a kernel, or one of {known}")
        return found

    @cached_property
    def _computed(self) -> list[Node]:
        return [m for kernel in members_of(self.partition) for m in kernel if not isinstance(m, Finish)]

    def _program(self, kernels: list[Collection[Member]]) -> Program:
        old = self.program
        partition = divided(old.partition, [list(kernel) for kernel in kernels], old.target.chunking)
        return old.divided(partition)

    # data for the page -----------------------------------------------------------------------------------------------

    def data(self) -> dict[str, Any]:
        """Everything that the page shows, as plain data."""
        taken = {kernel.name: kernel.program for kernel in self.cost.kernels if kernel.rounds}
        board = tables(self.partition, self.names, taken)
        number = {each["name"]: i for i, each in enumerate(board["items"])}
        known = {node: number[name] for node, name in self.names.items() if name in number}
        views = self._views()
        direction = laid_out(views[0].scene)[1]  # the same for all pictures
        computing = [kernel for kernel in self.cost.kernels if kernel.kind != "copies"]  # in the order of the groups
        opened = [self._view(view, direction) for view in views]
        pictures = [each.pop("svg") for each in opened]  # in a row: compressed, what they repeat takes no space
        listing = Listing(self.program, self.inputs)
        values, unknown = values_of(self.program.graph, self.shown.given)
        later, _ = values_of(self.program.final, self.shown.given)
        written = {node: value for node, value in later.items() if node in self.partition.home}
        return {
            "about": self.said(), "sums": self._sums(), "pictures": pictures, "views": opened,
            "rows": listing.rows(values, written), "unknown": unknown, "steps": listing.steps(),
            "unlisted": listing.unlisted,
            "kernels": [self._kernel(group, kernel, known) for group, kernel in zip(self.partition.groups, computing)],
            "places": [self._place(i, number) for i in range(len(self.picked.places))],
            "whys": [self._crossing(crossing) for crossing in self.picked.crossings],
            "board": board | {"copied": self._copied()},
            "written": self.written.data() if self.written is not None else None,
        }

    def ways(self) -> dict[str, tuple[Count, float | None]]:
        """What each way to run the program costs, and the seconds that it takes, if they were measured.

        Eager mode runs composed functions as programs of their own, so it may take fewer launches than there are nodes.
        """
        counts = {
            "as you wrote it": self.cost.eager, "after the passes": self.cost.after_passes, "fused": self.cost.program,
        }
        ways = {name: (count, self.seconds.get(name)) for name, count in counts.items()}
        return ways if self.eager is None else {"eagerly": (self.eager.count, self.eager.seconds), **ways}

    def _sums(self) -> list[list[Any]]:
        """The rows of the table of ways: each number, and its text."""
        return [
            [name, [count.launches, f"{count.launches:,}"], [count.bytes, bytes_text(count.bytes)],
             *([[seconds, time_text(seconds)]] if seconds is not None else [])]
            for name, (count, seconds) in self.ways().items()
        ]

    def _copied(self) -> list[int]:
        """The launches and bytes of the copies of results at the end, which no move changes."""
        copies = [kernel.program for kernel in self.cost.kernels if kernel.kind == "copies"]
        return [sum(c.launches for c in copies), sum(c.bytes for c in copies)]

    def _views(self) -> list[View]:
        """The picture of the kernels; if some kernels are closed, also pictures with these kernels open."""
        if len(fold(self.picked.scene, self.room).boxes) == len(self.picked.scene.boxes):
            return [View(self.picked.scene, {}, {})]
        return views_of(self.picked.scene, self.room, MOST, DRAWN, rounds=False)

    def _view(self, view: View, direction: str) -> dict[str, Any]:
        """A picture of the kernels, some of them closed: the places in each box, and the arrows through memory."""
        boxes = self._places_of(view.scene)
        traffic = self._traffic(view.scene, boxes)
        svg = lean(draw(view.scene, direction, set(traffic)))
        exits = {"/".join(path): other for path, other in view.exits.items()}
        edges = [edge[:2] for edge in view.scene.edges]
        return {
            "svg": svg, "boxes": boxes, "edges": edges, "traffic": traffic, "doors": view.doors, "exits": exits,
            "down": direction == "down",
        }

    def _places_of(self, scene: Scene) -> list[list[int]]:
        """The places in each box of a scene in which some scopes are closed."""
        number = {id(box): i for i, box in enumerate(self.picked.scene.boxes)}
        opened = set(frames_of(scene))
        found = []
        for box in scene.boxes:
            if box.path is None:
                found.append([number[id(box)]])
                continue
            pile = next(run for run in self.outline.runs[box.path[:-1]] if box.path in run)
            found.append([i for path in pile if path not in opened for i in self.outline.members[path]])
        return found

    def _traffic(self, scene: Scene, boxes: list[list[int]]) -> dict[int, list[int]]:
        """The arrows of a scene that go through memory, with the crossings that each arrow shows."""
        home = {place: i for i, places in enumerate(boxes) for place in places}
        edges: dict[tuple[int, int, int], int] = {edge: i for i, edge in enumerate(scene.edges)}
        traffic: dict[int, list[int]] = {}
        for number, crossing in enumerate(self.picked.crossings):
            source, target, slot = self.picked.scene.edges[crossing.edge]
            a, b = home[source], home[target]
            edge = edges.get((a, b, 0 if scene.boxes[b].kind == "group" else slot))
            if edge is not None:
                traffic.setdefault(edge, []).append(number)
        return traffic

    def _kernel(self, group: Group, kernel: KernelCost, known: Mapping[Node, int]) -> dict[str, Any]:
        taken, eager = kernel.program, kernel.eager
        lowered = self.program.lowered.get(group)
        lines = plain_lines(source_of(lowered, self.names), known) if lowered is not None else []
        return {
            "name": group.name if lowered is not None else kernel.name, "kind": kernel.kind, "says": _kind(group),
            "lines": lines, "rows": [
                ["computes", ", ".join(node.name for node in kernel.nodes)],
                ["loops over", _loops(group) or "the library chooses"],
                ["reads", bytes_text(taken.bytes_read)], ["writes", bytes_text(taken.bytes_written)],
                ["operations", f"{taken.flops:,}"], ["for each byte", f"{taken.intensity:.2f} operations"],
                ["node by node", f"{bytes_text(eager.bytes)}, {counted(eager.launches, 'launch', 'launches')}"],
            ],
        }

    def _place(self, place: int, number: Mapping[str, int]) -> dict[str, Any]:
        group, node, part = self.picked.places[place]
        parts = ", parts" if part and group is not None else ""
        kernel = -1 if group is None else self.partition.groups.index(group)
        return {
            "kernel": kernel, "name": self.names[node] + parts, "type": type_of(node),
            "item": number.get(self.names[node], -1), "line": excerpt(node) if node.op is not None else None,
        }

    def _crossing(self, crossing: Any) -> list[Any]:
        source, target, _ = self.picked.scene.edges[crossing.edge]
        return [source, target, bytes_text(crossing.bytes), crossing.why]

    # other forms ----------------------------------------------------------------------------------------------------

    def to_svg(self) -> str:
        """As written → fused, or the kernels of a moved program in one picture."""
        if self.written is not None:
            return self.written.svg()
        scene = fold(self.picked.scene, self.room)
        return draw(scene, heavy=set(self._traffic(scene, self._places_of(scene))))

    def text(self) -> str:
        """The work of each kernel, and the reasons why kernels were not fused."""
        lines = [str(self.cost)]
        reasons: Counter[str] = Counter()
        for crossing in self.picked.crossings:
            source, target, _ = self.picked.scene.edges[crossing.edge]
            a, b = self.picked.places[source], self.picked.places[target]
            if a.group is not None:
                reasons[f"{self.names[a.node]} → {self.names[b.node]}: {crossing.why}"] += 1
        if reasons:
            lines += ["", "why not in one kernel?", *[f"  {reason}" for reason in reasons]]
        rows = [[name, str(c.launches), bytes_text(c.bytes), f"{c.flops:,}"] for name, (c, _) in self.ways().items()]
        return "\n".join([*lines, "", as_table(("", "launches", "traffic", "operations"), rows, left=1)])


def _loops(group: Group) -> str:
    return str(group.loops).removesuffix(" in 1 chunks") if group.loops is not None else ""


def _kind(group: Group) -> str:
    if group.library is None:
        return f"a generated kernel: {_loops(group)}"
    if group.library.launched:
        return "a generated kernel: a product"
    return "your kernel" if isinstance(group.library, UserKernel) else "a library call"
