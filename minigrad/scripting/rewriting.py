"""Rewrites a function: each dynamic statement becomes functions, and a call that decides between them.

    if x.sum() > 0:                def if_true():
        y = x * 2                      y = x * 2
    else:                              return y
        y = -x              ->
                                   def if_false():
                                       y = -x
                                       return y
                                   y = script.cond(x.sum() > 0, if_true, if_false)

The functions read other variables like any inner function, and take the variables that they change as parameters.
"""

from __future__ import annotations

import ast
from typing import Any

from .blocks import AUGMENTED, Block, Survey
from .classify import Kinds, never_a_tensor
from .lowering import Lowering
from .making import Fresh, assign, call, function, load, loaded, placed, stored, thunk
from .names import walk_frame

HARMLESS = (
    ast.Name, ast.Constant, ast.Attribute, ast.Compare, ast.UnaryOp, ast.BoolOp, ast.BinOp, ast.Add, ast.Sub, ast.Mult,
    ast.expr_context, ast.cmpop, ast.unaryop, ast.boolop,
)
OF_THE_FRAME = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)


class Rewriting(ast.NodeTransformer):
    """Rewrites one function.  `owner` is the name under which it finds the functions of `dispatch.py`."""

    def __init__(self, definition: Any, owner: str, fresh: Fresh, blocks: dict[str, Block], filename: str) -> None:
        self.filename = filename
        self.owner, self.fresh, self.blocks = owner, fresh, blocks
        self.definition, self.comprehensions = definition, 0
        self.kinds = Kinds(definition)
        self.lowered = Lowering(definition, self.kinds, fresh)
        self.survey = Survey(definition, self.kinds, self.lowered, filename)
        self.first = next(iter([*definition.args.posonlyargs, *definition.args.args]), None)

    def rewritten(self) -> Any:
        """Rewrite the function in place, and return it."""
        node = self.definition
        start = 1 if ast.get_docstring(node, clean=False) is not None else 0
        body = self._block(node.body[start:])
        undefined = self.survey.sorted(self.survey.undefined)
        begin = [placed(assign(n, call(self.owner, "undefined", ast.Constant(n))), node.body[start]) for n in undefined]
        node.body = [*node.body[:start], *begin, *_tidied(body, self.lowered.result)]
        return node

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for node in body:
            new = self.visit(node)
            done += new if isinstance(new, list) else [new]
        return done

    # statements -------------------------------------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> Any:
        kind = self.kinds.of(node)
        names = [self.fresh(base) for base in ("if_true", "if_false")] if kind == "dynamic" else []
        test = self.visit(node.test)
        body, other = self._block(node.body), self._block(node.orelse)
        if kind != "dynamic":
            node.test, node.body, node.orelse = self._condition(node, test), body, other
            return node
        block = self.survey.blocks[node]
        for name in names:
            self.blocks[name] = block
        made: list[Any] = [
            self._function(name, block.parameters, part, block.outputs) for name, part in zip(names, (body, other))
        ]
        operands = [load(name) for name in block.parameters]
        made.append(_given(block.outputs, call(self.owner, "cond", test, *map(load, names), *operands)))
        return [placed(statement, node) for statement in made]

    def visit_While(self, node: ast.While) -> Any:
        kind = self.kinds.of(node)
        names = [self.fresh(base) for base in ("loop_condition", "loop_body")] if kind == "dynamic" else []
        test, body = self.visit(node.test), self._block(node.body)
        if kind != "dynamic":
            node.test, node.body = self._condition(node, test), body
            node.orelse = self._block(node.orelse)
            return node
        block = self.survey.blocks[node]
        condition, turn = names
        self.blocks[condition] = self.blocks[turn] = block
        state = block.outputs
        made: list[Any] = [
            function(condition, state, [ast.Return(test)]),
            self._function(turn, state, body, state),
            _given(state, call(self.owner, "while_loop", load(condition), load(turn), *map(load, state))),
        ]
        return [placed(statement, node) for statement in made]

    def visit_For(self, node: ast.For) -> Any:
        dynamic = self.kinds.of(node) == "dynamic"
        turn = self.fresh("loop_body") if dynamic else ""
        iterated, body = self._iterated(node.iter), self._block(node.body)
        if not dynamic:
            node.iter, node.body, node.orelse = iterated, body, self._block(node.orelse)
            return node
        block = self.survey.blocks[node]
        self.blocks[turn], state = block, block.outputs
        simple = isinstance(node.target, ast.Name) and node.target.id not in state
        item = node.target.id if simple else self.fresh("item")  # type: ignore[attr-defined]
        if not simple:
            body.insert(0, placed(ast.Assign([node.target], load(item)), node.target))
        going = self.lowered.going.get(node)
        keywords = {} if going is None else {"as_long_as": ast.Constant(going)}
        made: list[Any] = [
            self._function(turn, [item, *state], body, state),
            _given(state, call(self.owner, "for_loop", iterated, load(turn), *map(load, state), **keywords)),
        ]
        return [placed(statement, node) for statement in made]

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        node.value, unsure = self.visit(node.value), node in self.survey.unsure
        if not isinstance(node.target, ast.Name) or node.target.id not in self.survey.decided:
            node.target = self.visit(node.target)
            return node
        name: Any = load(node.target.id)
        before = call(self.owner, "defined", name) if unsure else name
        return placed(assign(name.id, call(self.owner, AUGMENTED[type(node.op)], before, node.value)), node)

    def visit_Assert(self, node: ast.Assert) -> Any:
        node.test, node.msg = self.visit(node.test), self.visit(node.msg) if node.msg else None
        if not never_a_tensor(node.test):
            node.test = self._checked(node.test, "it is an `assert`")
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        return Rewriting(node, self.owner, self.fresh, self.blocks, self.filename).rewritten()

    def visit_AsyncFunctionDef(self, node: Any) -> Any:
        return self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def _iterated(self, node: ast.expr) -> Any:
        node = self.visit(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            known = all(never_a_tensor(a) for a in node.args)
            if not known and "range" not in self.survey.local:
                node.func = placed(ast.Attribute(load(self.owner), "range", ast.Load()), node.func)
        return node

    def _function(self, name: str, parameters: list[str], body: list[ast.stmt], outputs: list[str]) -> Any:
        body = [node for node in body if not isinstance(node, ast.Pass)]
        if outputs:
            end = body[-1] if body else None
            body = _tidied([*body, placed(ast.Return(loaded(outputs)), end) if end else ast.Return(loaded(outputs))],
                           self.lowered.result)
        return function(name, parameters, body)

    def _condition(self, node: Any, test: ast.expr) -> ast.expr:
        """The condition of a statement that stays as it is."""
        return self._checked(test, self.kinds.reasons[node]) if self.kinds.of(node) == "plain" else test

    def _checked(self, test: ast.expr, reason: str) -> Any:
        return placed(call(self.owner, "plain", test, ast.Constant(reason)), test)

    # expressions ------------------------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> Any:
        if node not in self.survey.unsure:
            return node
        return placed(call(self.owner, "defined", load(node.id)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        facts = [(never_a_tensor(v), _harmless(v), _of_the_frame(v)) for v in node.values]
        values = [self.visit(v) for v in node.values]
        result, (_, harmless, bound) = values[-1], facts[-1]
        for value, (known, alike, binds) in reversed(list(zip(values[:-1], facts))):
            result = self._either(node, value, known, result, harmless, bound)
            harmless, bound = harmless and alike, bound or binds
        return result

    def _either(self, node: ast.BoolOp, left: Any, known: bool, right: Any, harmless: bool, bound: bool) -> Any:
        """`left and right`, or `left or right`."""
        if bound and not known:
            left = self._checked(left, "what follows it assigns, yields or awaits")
        if bound or known:
            return placed(ast.BoolOp(node.op, [left, right]), node)
        word, then = ("and", "and_then") if isinstance(node.op, ast.And) else ("or", "or_else")
        return placed(call(self.owner, f"logical_{word}" if harmless else then, left, thunk(right)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not) and not never_a_tensor(node.operand):
            return placed(call(self.owner, "logical_not", operand), node)
        node.operand = operand
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        """`a < b < c` is `a < b and b < c`, with b computed once."""
        parts = [node.left, *node.comparators]
        known, harmless = all(map(never_a_tensor, parts)), all(map(_harmless, parts))
        node = self.generic_visit(node)  # type: ignore[assignment]
        if len(node.ops) < 2 or known:
            return node
        named: dict[str, ast.expr] = {}
        lefts, rights = [node.left], []
        for value in node.comparators[:-1]:
            again, once = value, value
            if not isinstance(value, (ast.Name, ast.Constant)):
                name = self.fresh("middle")
                named[name], again, once = value, load(name), load(name)
                if not self.comprehensions:  # there, `:=` is not allowed everywhere
                    once = ast.NamedExpr(ast.Name(name, ast.Store()), value)
            lefts.append(again)
            rights.append(once)
        pairs = [ast.Compare(a, [op], [b]) for a, op, b in zip(lefts, node.ops, [*rights, node.comparators[-1]])]
        chained: Any = pairs.pop()
        for pair in reversed(pairs):
            chained = call(self.owner, "logical_and" if harmless else "and_then", pair, thunk(chained))
        if named and self.comprehensions:
            chained = ast.Call(thunk(chained, list(named)), list(named.values()), [])
        return placed(chained, node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        known, bound = never_a_tensor(node.test), _of_the_frame(node.body) or _of_the_frame(node.orelse)
        node = self.generic_visit(node)  # type: ignore[assignment]
        if known:
            return node
        if bound:
            node.test = self._checked(node.test, "a side of it assigns, yields or awaits")
            return node
        return placed(call(self.owner, "cond", node.test, thunk(node.body), thunk(node.orelse)), node)

    def visit_ListComp(self, node: Any) -> Any:
        self.comprehensions += 1
        node = self.generic_visit(node)
        self.comprehensions -= 1
        return node

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        known = [never_a_tensor(test) for test in node.ifs]
        node = self.generic_visit(node)  # type: ignore[assignment]
        node.ifs = [
            test if k else self._checked(test, "it is in a comprehension") for test, k in zip(node.ifs, known)
        ]
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        """Give `super()` its arguments: without them it fails in the inner functions that blocks become."""
        node = self.generic_visit(node)  # type: ignore[assignment]
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self.first is not None:
            node.args = [placed(load(name), node) for name in ("__class__", self.first.arg)]
        return node


def _given(outputs: list[str], value: ast.expr) -> ast.stmt:
    """`outputs = value`, or only the call if there are no outputs."""
    return ast.Assign([stored(outputs)], value) if outputs else ast.Expr(value)


def _harmless(node: ast.expr) -> bool:
    """Whether an expression can be computed even if its value is not needed: nothing in it can fail in a graph."""
    return all(isinstance(part, HARMLESS) for part in ast.walk(node))


def _of_the_frame(node: ast.expr) -> bool:
    return any(isinstance(part, OF_THE_FRAME) for part in walk_frame([node]))


def _tidied(body: list[ast.stmt], result: str | None) -> list[ast.stmt]:
    """Replace `result = x; return result` at the end by `return x`, where `result` is a generated name."""
    if len(body) < 2 or not isinstance(body[-1], ast.Return) or not isinstance(body[-2], ast.Assign):
        return body
    target, value = body[-2].targets[0], body[-1].value
    if isinstance(target, ast.Name) and isinstance(value, ast.Name) and target.id == value.id and target.id == result:
        return [*body[:-2], placed(ast.Return(body[-2].value), body[-2])]
    return body
