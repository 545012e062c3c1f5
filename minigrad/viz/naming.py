"""What a program calls its values: names and expressions, read from the code at the exact position of each operation.

Python stores for every instruction the lines and columns of its expression.  So `h = x @ w; y = h * h` gives two
names although it is one line, and a statement of three lines gives one.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from .. import nn
from ..core.mode import TANGENT, Branch, ModuleName
from ..core.node import Constant, Leaf, Node
from ..core.primitive import P
from ..support.errors import Gone
from ..support.source import Where, line_of
from .notation import (
    LIBRARIES,
    LONG,
    SIGNS,
    SUPERSCRIPTS,
    as_text,
    expression_at,
    found_at,
    function_of,
    symbol_of,
    syntax_of,
    unnumbered,
)
from .numbers import short

OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "pow",
    ast.MatMult: "matmul", ast.USub: "negative",
}
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
SHORT, MANY = 18, 4  # characters of an operand in an expression that the code does not write; operands in it
Names = Mapping[Node, str]  # of values
LOOPS = {"fori_loop", "scan", "while_loop"}
COME_IN = {"carry", "each"}  # nodes of a loop's body that the code does not write, see `bodies`


def names_in_code(
    nodes: Sequence[Node], known: Mapping[Node, str] = {}, carried: Mapping[Node, str] = {}
) -> dict[Node, str]:
    """What the user's code calls the values: of `h = relu(x @ w)`, the last operation makes `h`.

    Values that share a name are numbered: the rounds of a loop make `h₁`, `h₂` and `h₃`.  The names that are `known`
    stay as they are: those of tensors, which the code may only name where it makes a whole model.  So do those of a
    function's arguments.  Others are `carried` into a loop.
    """
    named = {**carried, **known}
    for where, run, results in _valued([node for node in nodes if node.code is not None]):
        name = found_at(where)[1]
        if name and not _made(run[0]):  # in `layer = nn.Linear(2, 3)`, no parameter is called `layer`
            named = dict.fromkeys(results, name) | named
        for source, name in _passed(where, run, named, known).items():
            named[source] = name
    for node in nodes:
        place = _filled(node)
        if place is not None:
            named.setdefault(node, ast.unparse(place.value))  # a new version of the whole
        for slot, operand in operands_of(node).items():
            source = _plain(node.inputs[slot])
            if not isinstance(source, Node) or source in named or node.inputs[slot] in named:
                continue
            given = node.code.co_varnames[: node.code.co_argcount]
            if source.op is not None:  # such as `mean` of `mean, width = encoder(x)`
                is_own = isinstance(operand, ast.Name) and operand.id not in (*given, *node.code.co_freevars)
                is_part = source.op is P.project and source.inputs[0] in named
                if is_own and not is_part and node.origin is None and source.where != node.where:
                    named[source] = ast.unparse(operand)
                continue
            owner: Any = operand
            while isinstance(owner, ast.Subscript) and isinstance(owner.slice, ast.Constant):
                owner = owner.value  # `params` of `params["encoder"]["w"]`
            if isinstance(owner, ast.Name | ast.Attribute):
                named[source] = name = ast.unparse(operand)
                if name in given:
                    known = {**known, source: name}
            elif isinstance(operand, ast.BinOp if repeated(source) else ast.BinOp | ast.Call) and _made(source):
                named[source] = as_text(operand, {})  # computed without being recorded
    count, own, seen = Counter(named.values()), Counter(known.values()), Counter[str]()
    for node in sorted(named, key=lambda node: node.serial):
        name = named[node]
        if (own if node in known else count)[name] > 1:
            seen[name] += 1
            named[node] = name + str(seen[name]).translate(SUBSCRIPTS)
    return named


def expressions(
    nodes: Sequence[Node], names: Names, numbers: dict[Node, str] | None = None
) -> dict[Node, str]:
    """What each operation computes, as the program writes it: `h · h + h`; inside a library call, from its inputs.

    There, `numbers` gets the values that are too long for the expressions of others, which call them `#1` and `#2`.
    Without it, dots stand for these values.

    >>> a = mg.asarray(3.0, requires_grad=True)
    >>> b = (a * a).node
    >>> expressions([b.inputs[0], b], {b.inputs[0]: "a"})[b]
    'a · a'
    """
    found = {node: text for node in nodes if node not in names and (text := repeated(node))}
    versions: dict[Node, dict[str, str]] = {}  # of each value: the names in its expression -> their numbered names
    made = [node for node in nodes if node.op is not None]
    own, foreign = dict.fromkeys(written_in_code(made)), set[Node]()
    for node in made:
        versions[node], whole = {unnumbered(names[node]): "…"} if node in names else {}, expression_at(node.where)
        for each in node.sources:
            if each in names:
                versions[node][unnumbered(names[each])] = names[each]
            elif each in versions and whole and expression_at(each.where) in [*ast.walk(whole)]:
                versions[node] |= versions[each]  # the one is a part of the other: the names are the same
                if each in foreign:
                    foreign.add(node)
            elif each.op is not None and each.code is not node.code:
                foreign.add(node)
        versions[node] |= {
            operand.id: name for slot, operand in operands_of(node).items()
            if isinstance(operand, ast.Name) and (name := _here(node, node.inputs[slot], operand.id, names, own))
        }
    taken = {*map(unnumbered, names.values())}  # by other values
    for node in own:
        if node in foreign:  # a call passed a value without a name, which may be what a parameter stands for
            given = node.code.co_varnames[: node.code.co_argcount]
            unknown = {name: "…" for name in _read_by(expression_at(node.where)) if name in given and name in taken}
            versions[node] = unknown | versions[node]
        place = getattr(expression_at(node.where), "slice", ast.Slice())
        computed = any(isinstance(each, ast.Name) for each in ast.walk(place))  # `parts[:, i]` is `parts[:, 0]`
        if node.op is not P.put and not (node.op is P.slice and computed):  # a write is called by what it fills
            found[node] = as_text(expression_at(node.where), versions[node])
    long = [node for node in own if len(text := found.get(node, "")) > SHORT or "…" in text]
    names = {node: f"{call_of(node)}(…)" if call_of(node) else "…" for node in long} | {**names}
    for node in made:
        if node not in found:
            found[node] = composed(node, [_operand(x, node, names, found, numbers) for x in node.inputs])
    return found


def _read_by(written: ast.AST | None) -> Iterator[str]:
    """The names that an expression reads itself, and does not only pass on to a call."""
    if isinstance(written, ast.Name):
        yield written.id
    for part in [written.func] if isinstance(written, ast.Call) else ast.iter_child_nodes(written) if written else ():
        yield from _read_by(part)


def _here(node: Node, source: Any, name: str, names: Names, own: Collection[Node]) -> str:
    """What stands for a name that an expression reads, such as the parameter of a function; nothing for itself.

    Dots stand for the value of an expression of the same code that was not assigned to the name: a call passed it on.
    """
    if source in names:
        return names[source] if " " not in names[source] else ""
    same = source in own and source.code is node.code and found_at(source.where)[1] not in ("", name)
    return "…" if same and source.op is not P.put else ""


def written_in_code(made: Sequence[Node]) -> list[Node]:
    """The operations whose value is that of an expression in the code; none inside a module of the library."""
    places: dict[Any, set[tuple[str, ...]]] = {}
    for node in made:
        places.setdefault(node.code, set()).add(node.scope)
    found = []
    for where, _, results in _valued(made):
        if expression_at(where) is not None:
            for node in results:
                depth = len(node.scope)
                if not any(len(other) < depth and node.scope[: len(other)] == other for other in places[node.code]):
                    found.append(node)
    return found


class Flow(str):
    """The name of the scope of a loop or of a branch, which has no parameters of its own."""


def scope_name(name: str) -> str:
    """The name of a scope: `1 Linear` for a module that has only a number; for a branch, the condition and its value.

    >>> model = mg.nn.Sequential(mg.nn.Tanh())
    >>> [scope_name(name) for name in model(mg.ones(2, requires_grad=True)).node.scope]
    ['Sequential', '0 Tanh']
    """
    if isinstance(name, Branch):
        return Flow(answered(name.where, name.endswith("true")))
    return f"{name} {name.kind}" if isinstance(name, ModuleName) and name.isdigit() else name


def layer_name(path: Sequence[str]) -> str:
    """The name of a layer: that of its module; a number stands behind the modules that it is in.

    >>> layer_name(("GPT", "blocks[0]")), layer_name(("Net", "up", "0")), layer_name(())
    ('blocks[0]', 'up[0]', '')
    """
    name = scope_name(path[-1]) if path else ""
    return dotted(path[:-1]) + re.sub(r"^\d+", r"[\g<0>]", name) if len(path) > 2 and name[0].isdigit() else name


def home_of(node: Node) -> tuple[str, ...]:
    """The scope of a node; of a gradient, the scope of the operation whose gradient it helps to compute."""
    return node.scope if node.origin is None else node.origin.scope


def answered(place: Where | None, taken: bool) -> str:
    """The condition of a call of `cond`, and its value: `x.sum() > 0 was true`."""
    test = next(iter(getattr(expression_at(place), "args", ())), None)
    text = "cond" if test is None or isinstance(test, ast.Starred) else as_text(test, {})
    return f"{text} was {'true' if taken else 'false'}"


def dotted(path: Sequence[str]) -> str:
    """The name of a module in its model: `blocks.0.norm` for `("GPT", "blocks[0]", "norm")`."""
    return ".".join(path[1:]).replace("[", ".").replace("]", "")


def operation_name(node: Node) -> str:
    """The name of an operation in a picture: a call has that of its function, and one of several results a number.

    >>> y = mg.jit(mg.tanh)(mg.ones(2, requires_grad=True))
    >>> operation_name(y.node), operation_name(y.node.inputs[0])
    ('tanh[0]', 'tanh')
    """
    if node.op is P.project:
        return f"{operation_name(node.inputs[0])}[{node.attrs['index']}]"
    if node.op is not P.call:
        return node.name
    application = node.attrs["application"]
    function = getattr(application, "function", None)
    name = function.tracer.name if function is not None else getattr(application.forward, "__name__", "")
    return name if name not in ("<lambda>", "forward", "") else call_of(node) or "f"


def nameless(node: Node) -> str:
    """What a value is called that has neither a name nor an expression.

    >>> nameless(mg.ones(2, requires_grad=True).node)
    'parameter'
    """
    numbers = _numbers(node)
    if numbers.size > 1 and (numbers == np.arange(numbers.size)).all():
        return f"0…{numbers.size - 1}"  # positions
    return "parameter" if isinstance(node, Leaf) else "data" if node.op is None else operation_name(node)


def call_of(node: Any) -> str | None:
    """The name of the function whose call in the user's code made a node."""
    return function_of(expression_at(node.where))


def name_at(where: Where | None, operation: str | None) -> str:
    """What the code calls the value of an operation at a place, or its expression; of what a call computes, nothing.

    Operands that have other dtypes are converted first, which no code says.
    """
    written, target = found_at(where)
    own = function_of(written) == operation or not (isinstance(written, ast.Call) or operation == "astype")
    return target or as_text(written, {}) if written is not None and own else ""


def _runs(nodes: Sequence[Node]) -> list[list[Node]]:
    """Nodes that one expression made, together: also those before and after the code of a layer in a model's call."""
    in_order = sorted(nodes, key=lambda node: node.serial)
    found, latest = list[list[Node]](), dict[Any, tuple[int, list[Node]]]()  # of each function: its last node and run
    for i, node in enumerate(in_order):
        last, run = latest.get(node.code, (i, [node]))
        between = [each.scope for each in in_order[last + 1 : i]] if run[-1].where == node.where else [()]
        if i == last or not all(path[:1] == node.scope[:1] and path != run[-1].scope[: len(path)] for path in between):
            run = []
            found.append(run)
        run.append(node)
        latest[node.code] = i, run
    return found


def _results(where: Where | None, run: Sequence[Node]) -> list[Node]:
    """The nodes of a run whose value is that of the expression: an operator is one node, a call ends with its own."""
    name = OPERATORS.get(type(getattr(expression_at(where), "op", None))) or call_of(run[0])
    own = [node for node in run if node.toward != TANGENT]  # forward mode computes tangents beside the values
    found = [node for node in own if node.name == name]
    if not found:  # of one operation there may be tangents alone; what `jvp` returns is one
        return list((own if hasattr(P, name or "") else run)[-1:])
    behind = own[own.index(found[-1]) + 1 :]
    return [*found[:-1], own[-1]] if behind and all(node.is_view for node in behind) else found


def _valued(nodes: Sequence[Node]) -> Iterator[tuple[Where | None, list[Node], list[Node]]]:
    """The runs, each with its place and the nodes whose value is that of the expression.

    A call such as `grad(f)(x)` has one value: the last one that rules made, if the program reads it.  What it makes
    before is its own, and the history of a result may end there.  A view is the value of a call only if the function
    of the call reads it: it may be a row that `scan` gives to a round, or a weight that a rule needs.
    """
    runs = _runs([node for node in nodes if not _counts(node)])
    gradients = {run[0].where for run in runs if any(node.origin for node in run)}
    read = {source for node in nodes if node.where not in gradients for source in node.sources} | {*nodes[-1:]}
    passed_on = {each for node in nodes for each in node.sources
                 if each.is_view or (each.op is P.project and each.inputs[0].op is P.call)}
    passed_on -= {each for node in nodes if node.origin is None for each in node.sources if each.code is node.code}
    for run in runs:
        where = run[0].where
        results = _results(where, run)
        if where in gradients:
            whole = any(node.origin for node in run) and run[-1] in read and call_of(run[-1]) != "backward"
            results = run[-1:] * whole
        yield where, run, [node for node in results if node not in passed_on or call_of(node) in (None, node.name)]


def _counts(node: Node) -> bool:
    """Whether a loop of the library makes it for itself: what comes into a round, its number, or a copy."""
    return node.name in COME_IN or (getattr(node.op, "kind", "") == "elementwise" and call_of(node) in LOOPS)


def _passed(
    where: Where | None, run: Sequence[Node], names: Names, held: Collection[Node]
) -> dict[Node, str]:
    """The value that a call is given, and its name there: `model(pictures)`, or `labels` in `loss(logits, labels)`.

    It is the only one without a name, and so is the argument.  What a model has `held` does not count, and neither do
    numbers of the library.
    """
    given = [ast.unparse(each) for each in getattr(expression_at(where), "args", ()) if isinstance(each, ast.Name)]
    read = dict.fromkeys([source for node in run for source in node.sources if source not in run])
    called = [name for name in given if name not in map(names.get, read)]
    data = [x for x in read if x.op is None and x not in names and x not in held and not _made(x) and not repeated(x)]
    return dict(zip(data, called)) if len(data) == len(called) == 1 else {}


def _made(node: Node) -> bool:
    """Whether the library made it: a parameter of a layer, or a constant whose tensor is gone, such as a part."""
    if isinstance(node, Constant):
        return node.tensor() is None
    return isinstance(node, Leaf) and isinstance(vars(nn).get(call_of(node) or ""), type)


def repeated(node: Node) -> str:
    """The number that all elements of a constant are; empty for other values.

    >>> x = mg.ones(3, requires_grad=True) * mg.zeros(3)
    >>> [repeated(each) for each in x.node.inputs]
    ['', '0']
    """
    numbers = _numbers(node)
    return short(numbers[0].item()) if numbers.size and (numbers == numbers[0]).all() else ""


def _numbers(node: Node) -> Any:
    """The elements of a constant in a row; none of other values."""
    try:
        array = node.array() if isinstance(node, Constant) else None
    except Gone:
        array = None
    # Another array was deleted, or graph mode had not computed it.
    return node.device.to_numpy(array).reshape(-1) if array.__class__ is node.device.ndarray else np.empty(0)


def loop_around(nodes: Sequence[Any]) -> str:
    """The loop in the code that most of some nodes lie in, the innermost one; empty for a loop of the library."""
    found: Counter[tuple[int, str]] = Counter()
    if len({node.where for node in nodes}) > 1:
        for node in nodes:
            file, line = line_of(node.where)
            found.update([(first, what) for first, last, what in syntax_of(file).loops if first <= line <= last])
    most = max(found, key=lambda each: (found[each], each[0]), default=None)
    return "" if most is None else most[1]


def operands_of(node: Node) -> dict[int, ast.AST]:
    """The operands of an operation in the code, by input, where the operation itself is written there.

    A tangent of forward mode is computed there too, from others.
    """
    written = None if node.toward == TANGENT else expression_at(node.where)
    found: list[ast.expr] = []
    if isinstance(written, ast.BinOp) and isinstance(written.op, ast.Pow):  # which may be computed as a square
        found = [written.left, written.right if node.name == "pow" else written.left]
    elif isinstance(written, ast.BinOp) and OPERATORS.get(type(written.op)) == node.name:
        found = [written.left, written.right]
    elif isinstance(written, ast.Call) and call_of(node) == node.name:
        found = [part for each in written.args for part in getattr(each, "elts", [each])]  # concat([x, y])
        owner = getattr(written.func, "value", None)
        if len(found) < len(node.inputs) and owner is not None and getattr(owner, "id", "") not in LIBRARIES:
            found.insert(0, owner)
    elif isinstance(written, ast.UnaryOp):
        found = [written.operand]
    elif isinstance(written, ast.Attribute | ast.Subscript):  # x.T, x[1:], x[known]
        found = [written.value, *[getattr(written, "slice", written)][: len(node.inputs) - 1]]
    return dict(enumerate(found)) if len(found) == len(node.inputs) else {}


# what the code does not write itself ---------------------------------------------------------------------------------


def _operand(
    value: Any, node: Node, names: Names, expressions: Names, numbers: dict[Node, str] | None
) -> str:
    """An operand of a node: its name, the layer that made it, its expression if that is short, or its operation.

    A value that was moved to a device is called as before, and so is a vector that stands as a column or a row.
    """
    while value not in names and value is not _plain(value):
        value = value.inputs[0]
    if not isinstance(value, Node):
        return short(value)
    origin, toward = value.origin, value.toward
    if origin is not None and toward is not None and (origin, toward) != (node.origin, node.toward):
        given = getattr(origin, "inputs", ())  # that of a written out body stands for a scope alone
        if 0 <= toward < len(given):  # what its rule passes back
            return "∂" + _operand(given[toward], origin, names, expressions, numbers)
    layer = next((name for name, other in zip_longest(home_of(value), home_of(node)) if name != other), None)
    if layer and value.op is not None and value not in names:
        return layer.kind if isinstance(layer, ModuleName) and layer.isdigit() else layer_name((layer,))
    text = names.get(value) or expressions.get(value) or nameless(value)
    if value.op is None and (len(text) > LONG // 2 or "…" in text):
        return text.partition(" of ")[0].rpartition(".")[2]
    if value in names or (len(text) <= SHORT and "…" not in text):
        return symbol_of(text)
    if numbers is not None:
        return numbers.setdefault(value, f"#{len(numbers) + 1}")
    return "…" if value.name in {*SIGNS, "negative"} else f"{operation_name(value)}(…)"


def _plain(value: Any) -> Any:
    """What a value was before it was moved to a device, or before a vector became a column or a row.

    Numbers such as those of `arange()` may stand as a column beside themselves as a row.
    """
    if not isinstance(value, Node) or value.op not in (P.to_device, P.reshape):
        return value
    if getattr(value.inputs[0].op, "kind", "") == "creation":
        return value
    is_vector = all(max((1, *each.shape)) == value.size for each in (value, *value.sources))
    return value.inputs[0] if value.op is P.to_device or is_vector else value


def _filled(node: Node) -> ast.Subscript | None:
    """The place in the code that an operation fills: `y[0]` in `y[0] = 1`, and in `y[0] += 1`."""
    place = expression_at(node.where) if node.op is P.put else None
    place = getattr(place, "left", place)
    return place if isinstance(place, ast.Subscript) else None


def index_text(index: Any) -> str:
    """An index, as the code writes it.

    >>> index_text((slice(None), slice(0, 8), ...)), index_text((0, ...)), index_text(2)
    ('[:, 0:8]', '[0]', '[2]')
    """
    parts = index if isinstance(index, tuple) else [index]
    return f"[{', '.join(map(_part, parts)).removesuffix(', …')}]"


def _part(part: Any) -> str:
    if isinstance(part, slice):
        ends = ["" if end is None else str(end) for end in (part.start, part.stop, part.step)]
        return ":".join(ends).removesuffix(":").replace("-", "−")
    return "…" if part is Ellipsis else str(part).replace("-", "−")


def composed(node: Node, operands: Sequence[str]) -> str:
    """An operation that the program does not write itself, from its inputs; dots stand for many."""
    if node.name == "pow" and operands[1].lstrip("−").isdigit():
        return operands[0] + operands[1].replace("−", "-").translate(SUPERSCRIPTS)
    if node.name == "multiply" and node.inputs[0] is node.inputs[1]:
        return operands[0] + "²"
    if node.name in SIGNS and len(operands) == 2:
        return f"{operands[0]} {SIGNS[node.name]} {operands[1]}"
    if node.name == "negative":
        return f"−{operands[0]}"
    place = _filled(node)
    if place is not None:
        return f"{operands[0]} with [{ast.unparse(place.slice)}] = {operands[1]}"
    if node.name == "permute_dims" and node.ndim == 2:
        return operands[0][:-1] if operands[0].endswith("ᵀ") else operands[0] + "ᵀ"
    if node.op in (P.slice, P.project):
        return operands[0] + index_text(node.attrs["index"])
    bare = [each[1:-1] if symbol_of(each[1:-1]) == each else each for each in operands]
    return f"{operation_name(node)}({', '.join(bare) if len(bare) <= MANY else '…'})"
