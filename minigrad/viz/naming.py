"""What a program calls its values: names and expressions, read from the code at the exact position of each operation.

Python stores for every instruction the lines and columns of its expression.  So `h = x @ w; y = h * h` gives two
names although it is one line, and a statement of three lines gives one.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, zip_longest
from typing import Any

from ..core.mode import TANGENT, Branch
from ..core.node import Constant, Node
from ..core.primitive import P
from ..support.errors import Gone
from ..support.source import Where, line_of, parsed, span_of
from .numbers import short

LONG = 28  # characters: in a longer expression, dots replace operands that have boxes of their own
SIGNS = {
    "add": "+", "subtract": "−", "multiply": "·", "divide": "/", "pow": "^", "matmul": "@", "equal": "=",
    "not_equal": "≠", "less": "<", "less_equal": "≤", "greater": ">", "greater_equal": "≥",
}
OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "pow",
    ast.MatMult: "matmul", ast.USub: "negative",
}
SUBSCRIPTS, SUPERSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"), str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
LIBRARIES = {"mg", "minigrad", "nn", "F"}  # whose functions are written without the module's name
COME_IN = {"carry", "each"}  # nodes of a loop's body that the code does not write, see `bodies`
ATOMS = ast.Name | ast.Constant | ast.Attribute
PLACES = ast.Name | ast.Attribute | ast.Subscript


def names_in_code(nodes: Sequence[Node], paths: Mapping[Node, str] | None = None) -> dict[Node, str]:
    """What the user's code calls the values: of `h = relu(x @ w)`, the last operation makes `h`.

    Values that share a name are numbered: the rounds of a loop make `h₁`, `h₂` and `h₃`.  `paths` are the names of
    parameters that the code only names where it makes the whole model.
    """
    named: dict[Node, str] = {}
    paths = paths or {}
    others = [node for node in nodes if node.code is not None and node not in paths]
    for where, run, results in _valued(others):
        name = _found(where)[1]
        if name:
            named |= dict.fromkeys(results, name)
        argument = _argument(where, run, paths) or _last_argument(where, run, {**paths, **named})
        if argument is not None:
            named.setdefault(*argument)
    for node in nodes:
        for slot, source in enumerate(node.inputs):
            if isinstance(source, Node) and source.op is None and source not in named and node.code is not None:
                operand = operands_of(node).get(slot)
                if _is_place(operand):
                    named[source] = ast.unparse(operand)  # type: ignore[arg-type]
                elif isinstance(operand, ast.BinOp | ast.Call) and _made(source) and not repeated(source):
                    named[source] = _written(operand, {})  # computed without being recorded
    count, seen = Counter(named.values()), Counter[str]()
    numbered = {}
    for node in sorted(named, key=lambda node: node.serial):
        name = named[node]
        seen[name] += 1
        numbered[node] = name if count[name] == 1 else name + str(seen[name]).translate(SUBSCRIPTS)
    return {**paths, **numbered}


def _is_place(operand: ast.AST | None) -> bool:
    """Whether an operand is a name, or what a container has: `w`, `self.w`, `params["encoder"]["w"]`."""
    while isinstance(operand, ast.Subscript) and isinstance(operand.slice, ast.Constant):
        operand = operand.value
    return isinstance(operand, ast.Name | ast.Attribute)


def expressions(nodes: Sequence[Node], names: Mapping[Node, str]) -> dict[Node, str]:
    """What each operation computes, as the program writes it: `h · h + h`; inside a library call, from its inputs.

    >>> a = mg.asarray(3.0, requires_grad=True)
    >>> b = (a * a).node
    >>> expressions([b.inputs[0], b], {b.inputs[0]: "a"})[b]
    'a · a'
    """
    found = {node: text for node in nodes if node not in names and (text := repeated(node))}
    versions: dict[Node, dict[str, str]] = {}  # of each value: the names in its expression -> their numbered names
    made = [node for node in nodes if node.op is not None]
    for node in made:
        known = [
            {_plain(names[each]): names[each]} if each in names else versions.get(each, {})
            for each in node.sources if each.op is None or each in names or each.code is node.code
        ]
        known += [  # what the code calls otherwise here: by the parameter of a function, or a second name
            {operand.id: names[source]} for slot, operand in operands_of(node).items()
            if isinstance(operand, ast.Name) and (source := node.inputs[slot]) in names and " " not in names[source]
        ]
        versions[node] = {name: version for each in known for name, version in each.items()}
    for node in written_in_code(made):
        if node.op is not P.put:  # which the code writes as the place that it fills
            found[node] = _written(_expression(node.where), versions[node])
    for node in made:
        if node not in found:
            found[node] = _composed(node, [_operand(x, node, names, found) for x in node.inputs])
    return found


def called_in_code(nodes: Sequence[Node], written: Mapping[Node, str]) -> dict[Node, str]:
    """Of what is `written` for nodes: names and whole expressions of values that the code itself computes."""
    own = written_in_code([node for node in nodes if node.op is not None])
    return {node: written[node] for node in own if "…" not in written[node]}


def written_in_code(made: Sequence[Node]) -> list[Node]:
    """The operations whose value is that of an expression in the code; none inside a module of the library."""
    places: dict[Any, set[tuple[str, ...]]] = {}
    for node in made:
        places.setdefault(node.code, set()).add(node.scope)
    found = []
    for where, _, results in _valued(made):
        if _expression(where) is not None:
            for node in [node for node in results if node.name not in COME_IN]:
                depth = len(node.scope)
                if not any(len(other) < depth and node.scope[: len(other)] == other for other in places[node.code]):
                    found.append(node)
    return found


def symbol_of(text: str) -> str:
    """A name or an expression as it stands behind ∂: `h`, `tanh(x)`, `(h · h)`.

    >>> [symbol_of(text) for text in ("self.w", "tanh(x)", "h · h", "y.sum()")]
    ['self.w', 'tanh(x)', '(h · h)', '(y.sum())']
    """
    return text if re.fullmatch(r"[\w.\[\]…₀-₉]+|\w+\([^()]*\)", text) else f"({text})"


def layer_name(path: Sequence[str]) -> str:
    """The name of a layer: that of its module.

    >>> layer_name(("GPT", "blocks[0]")), layer_name(("Sequential", "4")), layer_name(())
    ('blocks[0]', 'layer 4', '')
    """
    name = path[-1] if path else ""
    return f"layer {name}" if name.isdigit() else name


def asked(name: str) -> str:
    """The name of a scope; of a branch that ran in eager mode, what was asked and the answer."""
    return answered(name.where, name.endswith("true")) if isinstance(name, Branch) else name


def answered(place: Where | None, taken: bool) -> str:
    """What a call of `cond` asked, and the answer: `x.sum() > 0 was true`."""
    test = next(iter(getattr(_expression(place), "args", ())), None)
    text = "cond" if test is None or isinstance(test, ast.Starred) else _written(test, {})
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
    return application_name(node.attrs["application"]) or call_of(node) or "f"


def application_name(application: Any) -> str:
    """The name of the function that a call applies; empty if that of one with its own gradient says nothing."""
    function = getattr(application, "function", None)
    name = function.tracer.name if function is not None else getattr(application.forward, "__name__", "")
    return "" if name in ("<lambda>", "forward") else name


def place_of(node: Node) -> tuple[str, int] | None:
    """The file and the line that made a node."""
    return None if node.where is None else _place(node.where)


_place, _span = lru_cache(10_000)(line_of), lru_cache(10_000)(span_of)


def call_of(node: Node) -> str | None:
    """The name of the function whose call in the user's code made a node."""
    return _function(_expression(node.where))


def _function(written: ast.AST | None) -> str | None:
    """The name of the function that is called."""
    function = getattr(written, "func", None)
    while isinstance(function, ast.Call):  # grad(f)(x)
        function = function.func
    return getattr(function, "attr", getattr(function, "id", None))


def name_at(where: Where, operation: str) -> str:
    """What the code calls the value of an operation at a place, or its expression; of what a call computes, nothing."""
    written, target = _found(where)
    if written is None or (isinstance(written, ast.Call) and _function(written) != operation):
        return ""
    return target or _written(written, {})


def _runs(nodes: Sequence[Node]) -> list[tuple[Where | None, list[Node]]]:
    """Nodes that one expression made, together."""
    in_order = sorted(nodes, key=lambda node: node.serial)
    return [(where, list(run)) for where, run in groupby(in_order, key=lambda node: node.where)]


def _results(where: Where | None, run: Sequence[Node]) -> list[Node]:
    """The nodes of a run whose value is that of the expression: an operator is one node, a call ends with its own."""
    name = OPERATORS.get(type(getattr(_expression(where), "op", None))) or call_of(run[0])
    own = [node for node in run if node.toward != TANGENT]  # forward mode computes tangents beside the values
    found = [node for node in own if node.name == name]
    if not found:  # of one operation there may be tangents alone; what `jvp` returns is one
        return list((own if hasattr(P, name or "") else run)[-1:])
    behind = own[own.index(found[-1]) + 1 :]
    return [*found[:-1], own[-1]] if behind and all(node.is_view for node in behind) else found


def _valued(nodes: Sequence[Node]) -> Iterator[tuple[Where | None, list[Node], list[Node]]]:
    """The runs, each with its place and the nodes whose value is that of the expression.

    A call such as `grad(f)(x)` has one value: the last one that rules made, if the program reads it.  What it makes
    before is its own, and the history of a result may end there.
    """
    runs = _runs(nodes)
    gradients = {where for where, run in runs if any(node.origin for node in run)}
    others = [node for node in nodes if node.origin is None and node.where not in gradients]
    read = {source for node in others for source in node.sources} | {*nodes[-1:]}
    own = set[Node]()
    for where, run in runs:
        results = [node for node in _results(where, run) if _reads_as_written(node, own)]
        if where in gradients:
            whole = any(node.origin for node in run) and run[-1] in read and call_of(run[-1]) != "backward"
            results = run[-1:] if whole else []
        own.update(results)
        yield where, run, results


def _reads_as_written(node: Node, own: Collection[Node]) -> bool:
    """Whether an operator reads what its expression says; one that a gradient rule made there may read other values.

    Its `own` are the nodes before it whose values are those of expressions.
    """
    if not isinstance(_expression(node.where), ast.BinOp):
        return True
    for slot, operand in operands_of(node).items():
        source = node.inputs[slot]
        if isinstance(source, Node) and source.op is not None and source.code is node.code:
            if isinstance(operand, ast.Name):
                if source in own and source.op is not P.put and _found(source.where)[1] not in ("", operand.id):
                    return False
            elif not isinstance(operand, ATOMS) and source not in own:
                return False
    return True


def _argument(where: Where | None, run: Sequence[Node], known: Collection[Node]) -> tuple[Node, str] | None:
    """The data that a call such as `model(pictures)` or `grad(f)(x)` begins with, and its name; not what is `known`.

    What a library function made of the data for itself is named as that: patches of pictures are `from pictures`.
    """
    written = _expression(where)
    if not isinstance(written, ast.Call) or len(written.args) != 1 or not isinstance(written.args[0], ATOMS):
        return None
    name = ast.unparse(written.args[0])
    for node in run:
        for source in node.sources:
            made = _made(source)
            is_data = source.op is None and source.origin is None  # a rule makes numbers too
            certain = isinstance(source, Constant) or not node.scope or known  # else it may be a layer's parameter
            if is_data and certain and source not in known and not (made and repeated(source)):
                return source, f"from {name}" if made else name
            if source.op is not None and source not in run:
                return None
    return None


def _made(node: Node) -> bool:
    """Whether the tensor of a constant is gone: the library made it, or it was the value of a part."""
    return isinstance(node, Constant) and node.tensor() is None


def _last_argument(
    where: Where | None, run: Sequence[Node], known: Mapping[Node, str]
) -> tuple[Node, str] | None:
    """The data that is the only nameless one in a call, such as `labels` in `cross_entropy(logits, labels)`."""
    written = _expression(where)
    given = [each for each in getattr(written, "args", ()) if not isinstance(each, ast.Constant)]
    read = dict.fromkeys([source for node in run for source in node.sources if source not in run])
    taken = [each for each in read if not (_made(each) or repeated(each))]
    if not isinstance(written, ast.Call) or len(given) < 2 or len(taken) != len(given):
        return None
    data = [each for each in taken if each.op is None and each not in known]
    names = [ast.unparse(each) for each in given if isinstance(each, ast.Name)]
    left = [name for name in names if name not in [known.get(each) for each in taken]]
    return (data[0], left[0]) if len(data) == len(left) == 1 else None


def repeated(node: Node) -> str:
    """The number that all elements of a constant are; empty for other values.

    >>> x = mg.ones(3, requires_grad=True) * mg.zeros(3)
    >>> [repeated(each) for each in x.node.inputs]
    ['', '0']
    """
    if not isinstance(node, Constant) or not node.size:
        return ""
    try:
        array = node.array()
    except Gone:
        return ""
    if array.__class__ is not node.device.ndarray:  # it was deleted, or graph mode had not computed it
        return ""
    numbers = node.device.to_numpy(array).reshape(-1)
    return short(numbers[0].item()) if (numbers == numbers[0]).all() else ""


class _Syntax:
    """The expressions of a file, by where they are, and what their values are assigned to."""

    def __init__(self, text: str) -> None:
        self.expressions: dict[tuple[int, ...], ast.AST] = {}
        self.targets: dict[tuple[int, ...], str] = {}
        self.loops: list[tuple[int, int, str]] = []  # the first and the last line, and what is repeated
        try:
            tree = parsed(text)
        except (SyntaxError, ValueError):
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                self._assigned(node.targets[0], node.value)
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                self._assigned(node.target, node.value)
            elif isinstance(node, ast.AugAssign):
                self._assigned(node.target, node)
                written = ast.BinOp(node.target, node.op, node.value)
                self.expressions[_key(node)] = written
            elif isinstance(node, ast.Call) and "viz" in ast.unparse(node.func).split("."):
                continue  # what a view calls is not written there
            elif isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Call | ast.Subscript | ast.Attribute):
                self.expressions.setdefault(_key(node), node)
            elif isinstance(node, ast.For | ast.While):
                self.loops.append((node.lineno, node.end_lineno or node.lineno, _repeats(node)))

    def _assigned(self, target: ast.expr, value: ast.AST) -> None:
        if isinstance(target, ast.Name | ast.Attribute):
            self.targets[_key(value)] = ast.unparse(target)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):  # q, k = x @ wq, x @ wk
            for each, part in zip(target.elts, value.elts):
                self._assigned(each, part)
        elif isinstance(target, ast.Tuple):  # a, b = f(x)
            self.targets[_key(value)] = ""


def _repeats(loop: ast.For | ast.While) -> str:
    """The head of a loop: `for word in words`."""
    if isinstance(loop, ast.While):
        return f"while {_written(loop.test, {})}"
    each = f"for {ast.unparse(loop.target)}"
    return f"{each} in {_written(loop.iter, {})}"


def loop_around(nodes: Sequence[Node]) -> str:
    """The loop in the code that most of some nodes lie in, the innermost one; a loop of the library only has rounds."""
    found: Counter[tuple[int, str]] = Counter()
    if len({node.where for node in nodes}) > 1:
        for node in nodes:
            file, line = place_of(node) or ("", 0)
            found.update([(first, what) for first, last, what in _syntax_of(file).loops if first <= line <= last])
    most = max(found, key=lambda each: (found[each], each[0]), default=None)
    return "round" if most is None else most[1]


def _key(node: Any) -> tuple[int, ...]:
    """Where an expression is.  Of a call, only the end: the start that Python stores differs between its versions."""
    start = (0, 0) if isinstance(node, ast.Call) else (node.lineno, node.col_offset)
    return (*start, node.end_lineno, node.end_col_offset)


_syntax = lru_cache(64)(_Syntax)


def _syntax_of(file: str) -> _Syntax:
    return _syntax("".join(linecache.getlines(file)))


@lru_cache(10_000)
def _found(where: Where | None) -> tuple[ast.AST | None, str | None]:
    """The expression at an instruction, and what its value is assigned to; "" for several names."""
    span = None if where is None else _span(where)
    if where is None or span is None:
        return None, None
    line, last, start, end = span
    syntax = _syntax_of(where[0].co_filename)
    for key in ((line, start, last, end), (0, 0, last, end)):
        if key in syntax.expressions:
            return syntax.expressions[key], syntax.targets.get(key)
    return None, None


def _expression(where: Where | None) -> ast.AST | None:
    return _found(where)[0]


def operands_of(node: Node) -> dict[int, ast.AST]:
    """The operands of an operation in the code, by input, where the operation itself is written there."""
    written = _expression(node.where)
    found: list[ast.expr] = []
    if isinstance(written, ast.BinOp) and OPERATORS.get(type(written.op)) == node.name:
        found = [written.left, written.right]
    elif isinstance(written, ast.Call) and call_of(node) == node.name:
        found = list(written.args)
        if len(found) < len(node.inputs) and isinstance(written.func, ast.Attribute):
            found.insert(0, written.func.value)
    elif isinstance(written, ast.UnaryOp):
        found = [written.operand]
    elif isinstance(written, ast.Attribute | ast.Subscript):  # x.T, x[1:], x[known]
        found = [written.value, *[getattr(written, "slice", written)][: len(node.inputs) - 1]]
    return dict(enumerate(found)) if len(found) == len(node.inputs) else {}


# how expressions are written ------------------------------------------------------------------------------------------


class _Renamed(ast.NodeTransformer):
    """Names get their numbers, and library functions lose the name of their module."""

    def __init__(self, versions: Mapping[str, str]) -> None:
        self.versions = versions

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, PLACES) and ast.unparse(node) in self.versions:
            return ast.Name(self.versions[ast.unparse(node)])
        node = self.generic_visit(node)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in LIBRARIES:
            return ast.Name(node.attr)
        return node


class _Called(ast.NodeTransformer):
    """Calls lose their arguments: `f(…)`, and `sum(…)` for `(h * h).sum()`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        owner = getattr(node.func, "value", None)
        function = node.func if owner is None or isinstance(owner, ATOMS) else ast.Name(node.func.attr)  # type: ignore[attr-defined]
        return ast.Call(function if isinstance(function, ATOMS) else DOTS, [DOTS], [])


DOTS = ast.Name("…")


def _written(expression: Any, versions: Mapping[str, str]) -> str:
    """An expression as text that fits into a box.

    A long one loses the arguments of the calls in it, and then its operands, the longest first: boxes show them.
    """
    whole: Any = _Renamed(versions).visit(ast.parse(ast.unparse(expression), mode="eval").body)
    text = _in_symbols(ast.unparse(whole))
    if len(text) > LONG:
        whole.keywords = []
        text = _in_symbols(ast.unparse(_Called().generic_visit(whole)))
    while len(text) > LONG:
        parts = [(field, i, part) for field, i, part in _operands(whole) if part is not DOTS]
        if not parts and isinstance(whole, ast.Call) and len(text) > LONG + 8:
            whole.args = [DOTS]
        if not parts:
            text = _in_symbols(ast.unparse(whole))
            break
        field, i, _ = max(parts, key=lambda part: len(ast.unparse(part[2])))
        if field == "func":  # `(h * h).sum()` is sum(…)
            whole.func, whole.args = ast.Name(whole.func.attr), [DOTS, *whole.args]
        elif i is None:
            setattr(whole, field, DOTS)
        else:
            getattr(whole, field)[i] = DOTS
        text = _in_symbols(ast.unparse(whole))
    text = re.sub(r"…(, …)+", "…", text)
    return text if len(text) <= LONG + 8 else text[: LONG + 7] + "…"


def _operands(whole: Any) -> Iterator[tuple[str, int | None, ast.AST]]:
    """The operands of an expression that are expressions themselves, each with its field and its place in a list."""
    for field, value in ast.iter_fields(whole):
        for i, part in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if field == "func":
                part = getattr(part, "value", part)
            if isinstance(part, ast.expr) and (part is DOTS or not isinstance(part, ATOMS)):
                yield field, i, part


def _in_symbols(text: str) -> str:
    """Python as mathematics.

    >>> _in_symbols("x ** 3 * w - -1")
    'x³ · w − −1'
    """
    text = re.sub(r" \*\* (-?\d+)\b(?![.e])", lambda found: found[1].translate(SUPERSCRIPTS), text)
    return text.replace(" * ", " · ").replace("-", "−")


def _plain(name: str) -> str:
    """A name without its number: `h` of `h₂`."""
    return name.rstrip("₀₁₂₃₄₅₆₇₈₉")


def _operand(value: Any, node: Node, names: Mapping[Node, str], expressions: Mapping[Node, str]) -> str:
    """An operand of a node: its name, the layer that made it, its expression if that is short, or its operation."""
    if not isinstance(value, Node):
        return short(value)
    layer = next((name for name, other in zip_longest(value.scope, node.scope) if name != other), None)
    if layer and value not in names:
        return layer_name((layer,))
    text = names.get(value) or expressions.get(value, "…")
    if len(text) > LONG // 2 or "…" in text:
        return text.rpartition(".")[2] if value.op is None else operation_name(value)
    return f"({text})" if " " in text and not text.endswith(")") else text


def _composed(node: Node, operands: Sequence[str]) -> str:
    """An operation that the program does not write itself, from its inputs."""
    if node.name == "pow" and operands[1].lstrip("−").isdigit():
        return operands[0] + operands[1].replace("−", "-").translate(SUPERSCRIPTS)
    if node.name == "multiply" and node.inputs[0] is node.inputs[1]:
        return operands[0] + "²"
    if node.name in SIGNS and len(operands) == 2:
        return f"{operands[0]} {SIGNS[node.name]} {operands[1]}"
    if node.name == "negative":
        return f"−{operands[0]}"
    place = _expression(node.where)
    if node.op is P.put and isinstance(place, ast.Subscript):
        return f"{operands[0]} with [{ast.unparse(place.slice)}] = {operands[1]}"
    if node.name == "permute_dims" and node.ndim == 2:
        return f"{operands[0]}ᵀ"
    if node.op is P.project:
        return f"{operands[0]}[{node.attrs['index']}]"
    if node.op is P.reshape and node.shape == node.inputs[0].shape:
        return f"{operands[0]} in {call_of(node) or 'grad'}"  # the same value, as `grad` takes it
    bare = [each[1:-1] if each.startswith("(") else each for each in operands]
    alike = [(each, len([*run])) for each, run in groupby(bare)]
    listed = ", ".join([f"{n} × {each}" if n > 1 and each != "…" else each for each, n in alike])
    return f"{operation_name(node)}({listed})"
