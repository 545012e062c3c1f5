"""Phases and layers: the forward pass, the backward pass or the update, and the module, of each part of a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from ..core.mode import ModuleName
from ..core.node import Node
from ..support.source import Where
from .models import Role
from .naming import Flow, call_of, dotted, home_of, scope_name
from .scene import Scene, Scopes, inside

FORWARD, BACKWARD, UPDATE = "forward", "backward", "update"
PHASES = FORWARD, BACKWARD, UPDATE
WALKS = "autodiff/reverse.py", "autodiff/quick_steps.py"  # the code of the backward pass
PUSHES = "pushed_forward", "_pushed_to_several"  # the functions that compute tangents
WALK = {"walk", "_one_by_one", "_all_at_once", "contributions"}  # the function that goes back; those that call rules
INSIDE = "autodiff/forward.py", "autodiff/batching.py"  # jvp and vmap
Path = tuple[str, ...]
Home = tuple[str, Path]  # a phase ("" in a program that has only one), and the modules


class Section(NamedTuple):
    """A phase of a program ("" if it has only one), and a layer in it ("" outside all modules)."""

    phase: str
    layer: str

    @property
    def title(self) -> str:
        """The phase and the layer in words.

        >>> Section("forward", "blocks[0]").title, Section("update", "").title, Section("", "").title
        ('forward · blocks[0]', 'update', '')
        """
        return " · ".join(filter(None, self))


def paths_of(
    nodes: Sequence[Node], traced: Sequence[Node] = (), sources: Mapping[Node, Node] = {}
) -> dict[Node, Home]:
    """The phase and the modules of each node of a graph: `("backward", ("GPT", "blocks[0]", "norm1"))`.

    Nodes made by a gradient rule, and what lies between them, are the backward pass.  What is computed from gradients
    is the update if it leads to a new value for an input, with its shape; what is computed only for that belongs to it.
    All else is the forward pass, also that of a module that runs after a gradient, as in a second step.

    After the passes, a node may be one of two phases.  So a node has the home of the `traced` one that is its source;
    those of the traced nodes are there too.
    """
    found, first = _paths(nodes), _paths(traced)
    found = first | found | {node: first[old] for node, old in sources.items() if node in found and old in first}
    several = len({phase for phase, _ in found.values()}) > 1
    return found if several else {node: ("", path) for node, (_, path) in found.items()}


def is_tangent(frames: Iterable[Where]) -> bool:
    """Whether functions led to a tangent of forward mode."""
    return any(code.co_name in PUSHES for code, _ in frames)


def is_gradient(frames: Sequence[Where], rule: bool) -> bool:
    """Whether functions led to a gradient, or to its `rule` in the user's code; one that computes a tangent is none."""
    before = takewhile(lambda frame: not is_tangent([frame]), frames)
    return (rule and not is_tangent(frames)) or any(inside(code.co_filename) in WALKS for code, _ in before)


def phase_of(frames: Sequence[Where], rule: bool) -> str:
    """The phase of a call in eager mode, by the functions that led to it, and by whether it is in a gradient `rule`.

    A gradient inside jvp or vmap is a part of what these compute: in a graph, too, nothing says otherwise.
    """
    files = {inside(code.co_filename) for code, _ in frames}
    if not files.isdisjoint(INSIDE):
        return FORWARD
    optimizes = any(file.startswith("optim/") for file in files)
    return BACKWARD if is_gradient(frames, rule) else UPDATE if optimizes else FORWARD


def readers_of(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """The nodes that read each value, each of them once."""
    found: dict[Node, list[Node]] = {}
    for node in nodes:
        for source in {*node.sources}:
            found.setdefault(source, []).append(node)
    return found


def _paths(nodes: Sequence[Node]) -> dict[Node, Home]:
    users = readers_of(nodes)
    rules, again, after = set[Node](), set[Node](), set[Node]()  # a further forward pass; what a gradient leads to
    passed = {node.origin.where for node in nodes if node.origin}  # code whose gradient is computed: a forward pass
    shapes: dict[Node, set[Any]] = {}  # of the inputs that each value is computed from, without gradients
    for node in nodes:
        late = after.intersection(node.sources)
        # The sum of the contributions to a gradient, in the dtype of its input, belongs to the rules.
        if node.origin is not None or (node.name in ("add", "astype") and late and rules.issuperset(node.sources)):
            rules.add(node)
        elif late and (again >= late or node.where in passed or any(isinstance(n, ModuleName) for n in node.scope)):
            again.add(node)
        if late or node in rules:
            after.add(node)
        read = () if node in rules else node.sources
        shapes[node] = {shape for source in read for shape in shapes.get(source, [source.shape])}
    before, late, between = rules | again, after - again, after - rules - again
    # What is computed only for the update; what leads to a further forward pass, or to a new value for an input.
    used, updated, changes = {*late}, {*again}, set[Node]()
    for node in reversed(nodes):
        readers = users.get(node, ())
        if node in between and not updated.isdisjoint(readers):
            updated.add(node)
        elif not before.isdisjoint(readers):
            before.add(node)
        if node not in before and not used.isdisjoint(readers):
            used.add(node)
        ends = not readers and node in late and node not in before  # a gradient itself is not a new value
        if node in updated or not changes.isdisjoint(readers) or (ends and node.shape in shapes[node]):
            changes.add(node)
    changes &= used
    found: dict[Node, Home] = {}
    for node in nodes:
        if node in before or call_of(node) == "backward":  # which also adds to a gradient that is there
            given = node.scope or node.composite or node.sources or not late.issuperset(users.get(node, ()))
            phase = BACKWARD if node in late or not given else FORWARD  # such as the 1 to begin with
        else:
            phase = UPDATE if node in changes and (node in late or not node.scope) else FORWARD
        scope = home_of(node.origin or node)  # a gradient of a gradient is where that is
        if phase != FORWARD and node.origin is None and not scope:
            scope = _deepest([found[source][1] for source in node.sources if source in found])
        found[node] = phase, scope
    return found


def _deepest(paths: Collection[Path]) -> Path:
    """The longest of some paths if all others lead to it; else what they have in common."""
    longest = max(paths, key=len, default=())
    while any(path[: len(longest)] != longest[: len(path)] for path in paths):
        longest = longest[:-1]
    return longest


def layers_of(paths: Sequence[Path]) -> dict[Path, Path]:
    """The scope that each path is folded into: a module of a model, or what is in it.

    A scope that has most of the paths is opened: what a model consists of is inside, such as in a `Sequential`.

    >>> layers_of([("net", "up", "norm"), ("net", "up"), ("net", "down"), ("net", "down")])[("net", "up", "norm")]
    ('net', 'up')
    >>> layers_of([("net", "all", "up"), ("net", "all", "down")])[("net", "all", "up")]
    ('net', 'all', 'up')
    """
    layer = {path: path[:2] for path in paths}
    while True:
        sizes = Counter([layer[path] for path in paths])
        largest = max(sizes, key=sizes.__getitem__, default=())
        opened = {path: path[: len(largest) + 1] for path, at in layer.items() if at == largest}
        if 2 * sizes[largest] <= len(paths) or {*opened.values()} == {largest}:
            return layer
        layer |= opened


def within(names: Iterable[str], scopes: Iterable[Path]) -> dict[str, Path]:
    """The scope of the module that holds each parameter: `blocks.0.norm.weight` is in `("GPT", "blocks[0]", "norm")`.

    If several models have such a module, it is unknown.

    >>> within(["up.0.bias", "gain"], [("Net",), ("Net", "up[0]")])
    {'up.0.bias': ('Net', 'up[0]'), 'gain': ('Net',)}
    """
    known: dict[str, set[Path]] = {}
    for path in scopes:
        for depth in range(1, len(path) + 1):
            known.setdefault(dotted(path[:depth]), set()).add(path[:depth])
    found = {}
    for name in names:
        module = name.rpartition(".")[0]
        while module and module not in known:
            module = module.rpartition(".")[0]
        if len(known.get(module, ())) == 1:
            (found[name],) = known[module]
    return found


def only_for(nodes: Sequence[Node], stored: Mapping[Node, Role]) -> dict[Node, Role]:
    """The parameter whose new value each node is computed for, if there is only one; `stored` are the new values."""
    readers = readers_of(nodes)
    found: dict[Node, dict[int, Role]] = {}  # by identity: parameters of two models may have one name
    for node in reversed(nodes):
        own = [stored[node]] if node in stored else [r for each in readers.get(node, ()) for r in found[each].values()]
        found[node] = {id(role): role for role in own}
    return {node: role for node, roles in found.items() if len(roles) == 1 for role in roles.values()}


def phased(scene: Scene, stored: Mapping[Node, Role]) -> Scene:
    """The scene with a scope around each phase, around the modules in it, and around the update of each parameter."""
    made = [node for box in scene.boxes for node in box.nodes if node.op is not None]
    known = paths_of(made)
    if BACKWARD not in {phase for phase, _ in known.values()}:
        return scene
    paths = {node: (phase, *[f"∂{scope_name(name)}" if phase == BACKWARD and not isinstance(name, Flow) else name
                             for name in path]) for node, (phase, path) in known.items()}
    modules = within([role.name for role in stored.values()], {path for _, path in known.values()})
    alone, names, homes = only_for(made, stored), Scopes(), dict[int, Path]()
    for node in made:
        role = alone.get(node)
        if known[node][0] == UPDATE and role is not None:
            home = modules.get(role.name, ())
            name = role.name.rpartition(".")[2] if home else role.name
            if id(role) not in homes:
                homes[id(role)] = names.inside((UPDATE, *home), f"{role.owner or 'update'} of {name}")
            paths[node] = homes[id(role)]
        elif known[node][0] == UPDATE and stored:
            paths[node] = (UPDATE, *filter(None, [call_of(node)]))
    return scene.in_scopes([paths.get(box.nodes[0], box.scope) for box in scene.boxes])
