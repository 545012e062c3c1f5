"""What each step of a program computes, in words: `softmax`, `∂linear1.weight`, `Adam of linear1.weight`.

The words come from what was recorded: the composed function that a node is a part of, its module, the input that a
gradient is for, and the parameter that is overwritten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any

from ..compile.fusion.count import functions_of
from ..compile.look.cost import Cost
from ..compile.running.plan import CHECK
from ..compile.running.steps import COPIES
from ..core.node import Node
from ..core.primitive import P
from ..nn.module import Module
from ..ops.composite import COMPOSED
from ..support.source import Where
from .compiled import Shown, sources_of
from .lanes import INDICES, NAMES
from .models import BUFFER, COUNTER, PARAMETER, STATE, Role
from .naming import call_of, dotted, expressions, layer_name, names_in_code, operation_name, scope_name, written_in_code
from .notation import unnumbered
from .phases import BACKWARD, FORWARD, PHASES, UPDATE, Path, Section, layers_of, only_for, paths_of, readers_of, within

MOST = 3  # words of a title
SEVERAL = ("", "several modules")  # the path of what belongs to several
LAYERS = Module.__module__.rpartition(".")[0]  # where layers and what they call are defined
SUM = "sum of gradients"  # of the contributions to one gradient
INPUT, CARRIED = "input", "state"  # the names of an operand that its function calls x, and of what a loop carries
Part = tuple[str, Any, str]  # "∂" or "", a call of a composed function, and the word that it has in a title


class Titles:
    """The titles of the steps of a program, and where each step belongs.

    >>> from minigrad.viz.compiled import FunctionCall, programs_of
    >>> f = mg.jit(lambda x, w: mg.softmax(mg.tanh(x @ w)))
    >>> titles = Titles(*programs_of(FunctionCall(f, (mg.ones((4, 4)), mg.ones((4, 4)))), "fusion"))
    >>> {step: titles.of(step) for step in titles.computed}
    {'matmul_1': 'x @ w', 'kernel_1': 'tanh(x @ w), softmax'}

    `cost` is that of the program, `computed` are the nodes of each step, none for a check, and `finished` those that a
    kernel makes of their parts: one that only combines partial results computes what these belong to.  `home` is the
    step that computes each node first; later ones compute it again.  `places` are the phase and the module of each
    node, traced ones too.
    """

    def __init__(self, shown: Shown) -> None:
        self.shown, self.cost, self.overwritten = shown, Cost(shown.program), shown.overwritten
        final, graph, plan = shown.program.final, shown.program.graph, shown.program.plan
        known = {kernel.name: [each.node for each in kernel.nodes] for kernel in self.cost.kernels}
        self.finished = {group.name: [*group.finishes] for group in shown.program.partition.groups}
        self.computed = {step.name: known.get(step.name) or self.finished.get(step.name, []) for step in plan.steps}
        self.became = {old: below_views(new) if computes(old) else new for old, new in final.became(graph).items()}
        self.before = sources_of(self.became)
        paths = paths_of(final.nodes, graph.nodes, self.before)
        paths = {node: (BACKWARD if shown.gradient else phase or FORWARD * shown.keeps, path)
                 for node, (phase, path) in paths.items()}
        stored = {node: role for node, role in self.overwritten.items() if role.kind == PARAMETER}
        # The parameter that each node of the update is for: the only one whose new value is computed from it.
        self.updated = {node: role for node, role in only_for(final.nodes, stored).items()
                        if paths[node][0] == UPDATE or node in self.overwritten}
        homes = within([role.name for role in self.updated.values()], {path for _, path in paths.values()})
        updates = UPDATE * any(phase for phase, _ in paths.values())  # "" in a program that has only one phase
        led = {node: (updates, homes[role.name]) for node, role in self.updated.items() if role.name in homes}
        places = {**paths, **led}
        layers = layers_of([path for _, path in places.values()])
        self.places = {node: (phase, layers[path]) for node, (phase, path) in places.items()}
        self.phases = sorted({phase for phase, _ in places.values()}, key=("", *PHASES).index)
        self.first = next(iter(self.phases), "")  # what has no phase belongs to it
        self.last = [COPIES] * bool(plan.copied)  # a step, after all others
        self.copied = [final.outputs[number] for number in plan.copied]
        self.home = {node: step for step, nodes in reversed(self.computed.items()) for node in nodes}
        self.spread: dict[tuple[str, Any], set[str]] = {}  # the steps that have a part of a call
        for node, step in self.home.items():
            for call in _calls(node):
                self.spread.setdefault(("∂" * bool(node.origin), call), set()).add(step)
        written = {node.origin or node for node in self.home}
        self.products = Counter([call for node in written if node.name == "matmul" for call in _calls(node)])

    def section(self, step: str) -> tuple[str, Path]:
        """The phase and the module of a step: those of what it overwrites, or of most nodes that it computes first.

        The empty path belongs to no module.  A kernel of the update is of all modules whose parameters it is for.
        """
        nodes = self.computed.get(step, self.copied)
        own = [node for node in nodes if node in self.overwritten or nodes is self.copied]
        return self.section_of(self.first_in(step) or nodes, own)

    def first_in(self, step: str) -> list[Node]:
        """The nodes of a step that no step before it computes; all of one that finishes what others began."""
        nodes = self.computed.get(step, [])
        return [node for node in nodes if self.home[node] == step] or nodes

    def now(self, node: Node) -> Node:
        """The final node of a traced one, or the traced one itself if another one became the same."""
        final = self.became.get(node, node)
        return final if self.before.get(final) is node else node

    def section_of(self, nodes: Sequence[Node], own: Sequence[Node]) -> tuple[str, Path]:
        """The phase and the module of nodes that are computed together, of which one's `own` count most."""
        found = Counter([self.place(node)[0] for node in own or nodes])
        phase = max(found, key=found.__getitem__, default="")
        homes = [self.place(node) for node in (nodes if phase == UPDATE else own or nodes)]
        inside = Counter([path for when, path in homes if when == phase and path])
        several = len(inside) > 1 and (own or phase == UPDATE)
        return phase, SEVERAL if several else max(inside, key=inside.__getitem__, default=())

    @cached_property
    def sections(self) -> dict[str, Section]:
        """The section of each step, by its name.

        >>> from minigrad.viz.compiled import FunctionCall, programs_of
        >>> net = mg.nn.Sequential(mg.nn.Tanh(), mg.nn.ReLU())
        >>> Titles(*programs_of(FunctionCall(net, (mg.ones(3),)), "fusion")).sections
        {'kernel_0': Section(phase='', layer='1 ReLU')}
        """
        return {step: Section(phase, self.rows.get(path, ""))
                for step in [*self.computed, *self.last] for phase, path in [self.section(step)]}

    @cached_property
    def rows(self) -> dict[Path, str]:
        """The name of each row: its module with its type, after the model if two models have such a module.

        They are in the order in which the code runs them.
        """
        nodes = sorted(self.places, key=lambda node: node.serial)
        paths = dict.fromkeys([path for _, path in map(self.places.__getitem__, nodes) if path])
        count = Counter([path[1:] for path in paths])
        return {path: f"{path[0]} · " * (count[path[1:]] > 1 and len(path) > 1) + layer_name(path) for path in paths}

    @cached_property
    def phase_at(self) -> dict[Where | None, str]:
        """The phase of what each place in the code computes, gradients aside, if that is one phase."""
        nodes = self.shown.program.graph.nodes
        found = {(node.where, self.places[node][0]) for node in nodes if node.origin is None}
        found |= {(node.origin.where, FORWARD) for node in nodes if node.origin}  # nothing else may need its value
        count = Counter([where for where, _ in found])
        return {where: phase for where, phase in found if count[where] == 1}

    @cached_property
    def readers(self) -> dict[Node, set[Node]]:
        """The final nodes that read each value."""
        return {node: {*readers} for node, readers in readers_of(self.shown.program.final.nodes).items()}

    @cached_property
    def names_in_code(self) -> dict[Node, str]:
        """What the code calls the values, also those whose gradient another program computes."""
        nodes = self.shown.program.graph.nodes
        origins = [node.origin for node in nodes if node.origin]
        every = sorted({*nodes, *origins}, key=lambda node: node.serial)
        return names_in_code(every, self.shown.names)

    @cached_property
    def called(self) -> dict[Node, str]:
        """The names and the expressions of values that the code itself computes, outside modules."""
        nodes, names = self.shown.program.graph.nodes, self.names_in_code
        parts = {below_views(node): text for node, text in names.items() if node.where == below_views(node).where}
        names = parts | names  # a product of vectors ends with a view
        written = {**expressions(nodes, names), **names}
        own = written_in_code([node for node in nodes if node.op is not None])
        new = {node for node in own if node in names and getattr(node.op, "kind", "") == "creation"}
        whole = {node: written[node] for node in own if call_of(node) in (None, node.name) or node in new}
        whole |= {node: text for node, text in written.items() if node.name == "matmul"}
        sources = {node: node for node in nodes} | self.before
        return {node: whole[old] for node, old in sources.items() if old in whole and not (
            node.composite or node.scope or node.origin or ("…" in whole[old] and functions_of(node.attrs)))}

    # words ----------------------------------------------------------------------------------------------------------

    def of(self, step: str) -> str:
        """The title of a step, and the other phases of what it computes: `linear bias, tanh + backward`."""
        nodes = self.computed.get(step)
        if not nodes:
            return NAMES[INDICES] if step.startswith(CHECK) else self.copies
        phase, path = self.section(step)
        own = [node for node in self.first_in(step) if computes(node)] or nodes
        main = [node for node in own if self.places[node][0] == phase] or own
        return " + ".join([self.title(main, phase, path), *sorted({self.places[node][0] for node in own} - {phase})])

    @cached_property
    def copies(self) -> str:
        """What is copied at the end: `2 copies of ∂0.weight, ∂2.weight`, `a copy of x, kept for the gradient`."""
        kept = ", kept for the gradient" * (min(self.shown.program.plan.copied, default=0) >= self.shown.results)
        count = f"{len(self.copied)} copies" if self.copied[1:] else "a copy"
        return f"{count} of {listed(map(self.value, self.copied))}{kept}"

    def value(self, node: Node, path: Path = ()) -> str:
        """The name of a value, inside a module, whichever step writes it; of a call, only the result has its name."""
        name = self.shown.names.get(node) or self._title([node], self.place(node)[0], path).removesuffix(", copied")
        made, call = self.before.get(node, node), self._part(node, path, 1)[2]
        results = [below_views(each) for each in made.composite.outputs if each] if made.composite else []
        if made in results and not node.origin and node not in self.shown.names:
            return call  # the whole, and not the bias that is added last
        inner = made.composite and name == call
        # Or it is a loop that is a whole layer.
        return word_of(name, self.operation(node)) if inner or name == self.rows.get(path) else name

    def place(self, node: Node) -> tuple[str, Path]:
        """The phase and the module of a node; of an input or a constant, the first phase."""
        return self.places.get(node, (self.first, ()))

    def operation(self, node: Node) -> str:
        """The name of an operation as it is written: a pass may have replaced it."""
        written = self.before.get(node, node)
        return operation_name(written if computes(written) else node)

    def titled(self, nodes: list[Node]) -> tuple[Section, str]:
        """Where some nodes belong, and their title, wherever they are computed together."""
        phase, path = self.section_of(nodes, [node for node in nodes if node in self.overwritten])
        return Section(phase, self.rows.get(path, "")), self.title(nodes, phase, path)

    def title(self, nodes: list[Node], phase: str, path: Path) -> str:
        """The title of nodes that are computed together, in a phase and a module."""
        roles = [self.overwritten[node] for node in nodes if node in self.overwritten]
        if not roles:
            return self._title(nodes, phase, path)
        # A step that overwrites a buffer in the forward pass may compute a value for others, too.
        others = [node for node in nodes if phase != UPDATE and not self.readers.get(node, set()).issubset(nodes)]
        return ", ".join([_updates(roles, path), *[self._title(others, phase, path)] * bool(others)])

    def _title(self, main: list[Node], phase: str, path: Path) -> str:
        if phase == UPDATE:
            called = listed([name for node in main if (name := call_of(node))])  # such as `clip_grad_norm`
            known = [role for node in main if (role := self.updated.get(node))]
            if called == "step":
                return f"{_updates(known, path) or called}: {listed(map(self.operation, main))}"
            if called:
                return SUM if called == "backward" else called
        if all(node.is_view for node in main):
            return f"{listed([self.value(below_views(node)) for node in main])}, copied"
        main = [node.inputs[0] if node.op is P.project else node for node in main]  # a part of what a loop computes
        made = [node for node in main if phase != BACKWARD or node.origin is not None] or main
        parts: dict[Part, list[Node]] = {}
        for node in sorted(made, key=lambda node: node.serial):
            own = node in self.shown.program.partition.home or node.composite or node.scope or node.origin
            # Else its name is in that of its reader.
            if own or not any(node in reader.sources for reader in main if reader in self.called):
                parts.setdefault(self._part(node, path, len(main)), []).append(node)
        words = [self._word(part, own) for part, own in parts.items()]
        found = listed([word for word in words if word.rpartition(".")[0] not in words])
        if {sign for sign, _, _ in parts} == {"∂"}:
            found = f"∂({found})" if ", " in found else f"∂{found}"
        return found if any(map(computes, main)) else f"{found}, copied"

    def _part(self, node: Node, row: Path, alone: int) -> Part:
        """What a node is counted to: the largest call that one step computes, or a part of a larger one."""
        sign, made = "∂" * bool(node.origin), node.origin or node
        target = self._target(node, alone) if sign else None
        calls = _calls(node)
        spread = [self.spread.get((sign, call)) for call in calls]
        call = next((call for call, steps in zip(calls, spread) if steps == spread[-1]), None)
        if self.shown.gradient and not sign and calls:  # a small part of the call is computed again
            call = calls[-1]
        module = _inside(made.scope, row)
        module = "" if module[:1].isdigit() else module
        if target is not None and target[0] == " ":
            return sign, None, (module or _name(calls[0], made.scope)) + target
        if target is not None:
            return sign, None, _relative(target, row)
        if call is None:
            late = not sign and self.place(node)[0] == BACKWARD and computes(node)
            own = SUM if node.name == "add" and node.sources[1:] else f"gradients: {self.operation(made)}"
            return sign, None, self.called.get(node) or module or (own if late else self.operation(made))
        outside = made.scope[-1:] and row and made.scope[: len(row)] != row and not made.scope[-1][:1].isdigit()
        module = module or dotted(made.scope) * bool(outside)
        word = _name(call, made.scope) if call.outer is not None or not module else module
        return sign, None if len(self.spread.get((sign, call), ())) == 1 else call, word

    def _word(self, part: Part, nodes: Sequence[Node]) -> str:
        """The word of a part; a single operation of a call is named with its operands, or with the operation."""
        sign, call, word = part
        operations = {*map(self.operation, nodes)}
        if call is None or len(operations) > 1 or not any(map(computes, nodes)) or functions_of(nodes[0].attrs):
            return word
        (operation,) = operations
        known = [role.name.rpartition(".")[2] for x in nodes[0].inputs if (role := self._parameter(x))]
        if operation == "matmul" and not known and self.products[call] > 1:
            names = [self._operand(nodes[0], slot, call) for slot in range(2)]
            if all(names):
                return " · ".join(names)
        return f"{word} {known[0]}" if known and not sign and operation != "matmul" else word_of(word, operation)

    def _target(self, node: Node, alone: int = MOST) -> str | None:
        """What the gradient is for: a parameter, or in a step that computes nothing else, an input of the call.

        The gradient of a loop is one loop, for all its inputs.
        """
        origin: Any = node.origin
        if origin is None or node.toward is None or isinstance(origin.dtype, tuple):
            return None
        if node.toward >= len(origin.inputs):
            return None
        role = self._parameter(origin.inputs[node.toward])
        if role is not None:
            return role.name
        if alone > 1 or origin.name not in ("matmul", "place"):  # place: of a padding
            return None
        if origin.composite is None:
            operand, names = origin.inputs[node.toward], self.names_in_code
            return names.get(operand) or names.get(below_views(operand))
        return f" {self._operand(origin, node.toward, origin.composite) or INPUT}"

    def _parameter(self, node: Any) -> Role | None:
        """The role of a parameter, or of a view of one."""
        made: Any = below_views(node) if isinstance(node, Node) else None
        role = self.shown.roles.get(made) or self.overwritten.get(made)
        return role if role is not None and role.kind == PARAMETER else None

    def _operand(self, node: Node, slot: int, call: Any) -> str:
        """What a composed function calls an operand of one of its nodes, or the call that makes it."""
        traced: Any = self.before.get(node, node)
        made = traced.inputs[slot] if slot < len(traced.inputs) else None
        given = {value: CARRIED if value.name == "carry" else INPUT if name in ("x", "a") else name
                 for name, value in call.inputs.items() if value}
        while isinstance(made, Node) and made not in given:
            below = made.sources
            if made.composite is not call and made.composite is not None and made.name != "place":  # of a padding
                return _name(made.composite)
            if len(below) != 1:
                return ""
            made = below[0]
        return given.get(made, "")


def word_of(call: str, operation: str) -> str:
    """The name of an operation of a call.

    >>> word_of("linear", "matmul"), word_of("mean", "sum"), word_of("gelu", "kernel")
    ('linear product', 'mean: sum', 'gelu')
    """
    if operation in ("matmul", COPIES) or is_view(operation):
        return f"{call} product" if operation == "matmul" else f"{call}, copied"
    return call if operation == "kernel" else f"{call}: {operation}"


def is_view(operation: str) -> bool:
    """Whether an operation only makes a view; where it runs all the same, it copies."""
    return getattr(getattr(P, operation, None), "kind", "") == "view"


def _calls(node: Node) -> tuple[Any, ...]:
    """The calls of composed functions around a node, or around the node whose gradient it computes, outermost first."""
    made = node.origin or node
    return made.composite.path if made.composite is not None else ()


def computes(node: Node) -> bool:
    """Whether a node is more than an input, a constant or a view."""
    return node.op is not None and not node.is_view


def below_views(node: Node) -> Node:
    """The node whose value others only view."""
    while node.is_view:
        node = node.inputs[0]
    return node


def _name(call: Any, scope: Path = ()) -> str:
    """The name of a composed function; what only layers call is named as the layer."""
    own = scope and getattr(COMPOSED.get(call.name), "__module__", "").startswith(LAYERS)
    return scope_name(scope[-1]) if own else str(call.name).replace("_", " ")


def _inside(path: Path, row: Path) -> str:
    """The innermost module of a path, inside a row."""
    return scope_name(path[-1]) if len(path) > len(row) and path[: len(row)] == row else ""


def _relative(name: str, row: Path) -> str:
    """The name of a parameter, inside the module of a row.

    >>> _relative("blocks.0.norm.weight", ("GPT", "blocks[0]")), _relative("head.bias", ())
    ('norm.weight', 'head.bias')
    """
    return name.removeprefix(f"{dotted(row)}.")


def _updates(roles: Sequence[Role], row: Path) -> str:
    """What is overwritten: `Adam of weight`, `Adam of 0.weight, 2.weight`, `step of Adam`, `running_mean`."""
    if any(role.kind == PARAMETER for role in roles):
        owner = next((role.owner for role in roles if role.owner), "update")
        own = [role.name.rpartition(" of ")[2] for role in roles if role.kind in (PARAMETER, STATE)]
        return f"{owner} of {listed([_relative(name, row) for name in own])}"
    return listed([_relative(role.name, row) for role in roles if role.kind in (COUNTER, BUFFER)])


def listed(words: Iterable[str], most: int = MOST) -> str:
    """Words, each once; of more than fit, the first ones and the last one: the result is named.

    Of names that differ only by their numbers, the first and the last one stand for all.

    >>> listed(["k", "x₁", "x₂", "x₃"]), listed(["tanh", "exp", "tanh"]), listed(["a", "b", "c", "d"])
    ('k, x₁ … x₃', 'tanh, exp', 'a, b … d')
    """
    runs = [[*run] for _, run in groupby(dict.fromkeys(words), unnumbered)]
    found = [" … ".join(run[:: len(run) - 1 or 1]) for run in runs]
    return ", ".join(found) if len(found) <= most else f"{', '.join(found[: most - 1])} … {found[-1]}"
