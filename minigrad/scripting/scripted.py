"""`mg.script`: reads the source of a function, rewrites its control flow, and compiles the result."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import re
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..support.errors import ScriptError
from ..support.source import parsed
from ..support.words import a_type
from .dispatch import Script
from .making import Fresh
from .making import function as make_function
from .names import every_name, walk_frame
from .rewriting import Rewriting

F = TypeVar("F", bound=Callable[..., Any])
FUTURE = 0x1FE0000  # the bits of a code object's flags for imports from __future__
BY_NAME = {"locals", "eval", "exec", "vars"}  # these find variables by name


def script(function: F) -> F:
    """Let the `if`s, loops and conditions of a function depend on tensors, also where the function is recorded.

    The source is rewritten: each `if` becomes a call.  Where the value of the condition is known, the call runs one
    branch.  Where it is not known, under `mg.jit`, `mg.trace` and `mg.graph`, the call records a node like `mg.cond`.
    In the same way loops become `mg.while_loop` or `mg.scan`.  Statements that no tensor can decide stay unchanged.
    `f.source` is the rewritten source.

    A Python number that changes in such a loop or branch becomes a tensor there.

    >>> @mg.jit
    ... @mg.script
    ... def collatz(n):
    ...     steps = 0
    ...     while n != 1:
    ...         n = n // 2 if n % 2 == 0 else 3 * n + 1
    ...         steps += 1
    ...     return steps
    >>> collatz(mg.asarray(6)).item(), collatz(mg.asarray(27)).item(), len(collatz.traces)
    (8, 111, 1)
    """
    if isinstance(function, types.MethodType):
        return types.MethodType(script(function.__func__), function.__self__)  # type: ignore[return-value]
    _check(function)
    definition = _definition(function)
    code = function.__code__
    definition.decorator_list = []
    fresh = Fresh(every_name(definition) | set(code.co_freevars))
    name = fresh("script")
    calls = Script(code.co_filename)
    _refuse_by_name(definition, function)
    Rewriting(definition, name, fresh, calls.blocks, code.co_filename).rewritten()
    source = _readable(ast.unparse(ast.fix_missing_locations(definition)))
    made = _compiled(function, definition, name, calls)
    functools.update_wrapper(made, function)
    made.source = source  # type: ignore[attr-defined]
    return made  # type: ignore[return-value]


def _check(function: Any) -> None:
    """Raise an error for anything but a plain Python function."""
    if isinstance(function, (staticmethod, classmethod)):
        hint = f"@{type(function).__name__} above, @mg.script below it"
        raise ScriptError(f"script: this is {a_type(function)}", hint=hint)
    if getattr(function, "__wrapped__", None) is not None:
        raise ScriptError(
            f"script: {getattr(function, '__qualname__', repr(function))} wraps another function, which has the source",
            hint="@mg.script below the other decorators: @mg.jit above, @mg.script next to the function",
        )
    if not isinstance(function, types.FunctionType):
        raise ScriptError(
            f"script needs a function with source, not {a_type(function)}",
            hint="@mg.script on the method, `forward` or `__call__`",
        )
    if function.__name__ == "<lambda>":
        raise _error(function, "the source of a lambda cannot be found", hint="def f(x): ...")


def _error(function: Any, why: str, line: int = 0, hint: str | None = None) -> ScriptError:
    code = function.__code__
    line = line or code.co_firstlineno
    text = linecache.getline(code.co_filename, line).strip()
    where = f"{code.co_filename}:{line}" + (f"  {text}" if text else "")
    return ScriptError(f"script: {function.__qualname__}, at {where}: {why}", hint=hint)


def _definition(function: Any) -> Any:
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise _error(
            function, "there is no source, for example because the function was typed at a prompt or run by exec()",
            hint="define it in a file or a notebook cell",
        )
    try:
        tree = parsed("".join(lines), filename=code.co_filename)
    except SyntaxError:
        raise _error(function, "the file is no longer valid Python: it has changed since it was loaded") from None
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = min([node.lineno, *[d.lineno for d in node.decorator_list]])
            arguments = inspect.getargs(code)
            given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            if first == code.co_firstlineno and [a.arg for a in given] == arguments.args:
                return node
    raise _error(
        function, "the definition has moved: the file has changed since it was loaded", hint="load it again"
    )


def _refuse_by_name(definition: Any, function: Any) -> None:
    """Refuse calls that find variables by name: a block becomes a function, which has separate variables."""
    for node in walk_frame(definition.body):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BY_NAME:
            if node.func.id != "vars" or not node.args:
                why = f"{node.func.id}() finds variables by name, but blocks become functions with other variables"
                raise _error(function, why, node.lineno)


def _readable(source: str) -> str:
    """The text of a function with an empty line after each inner function, and without needless parentheses."""
    lines: list[str] = []
    inner: list[int] = []  # the indentations of the functions around a line
    for line in source.split("\n"):
        indent = len(line) - len(line.lstrip())
        if line:
            ended = bool(inner) and indent <= inner[-1]
            while inner and indent <= inner[-1]:
                inner.pop()
            if ended and lines[-1]:
                lines.append("")
            if line.lstrip().startswith("def "):
                inner.append(indent)
                if lines and lines[-1] == "" and lines[-2].lstrip().startswith("def "):
                    lines.pop()
        lines.append(re.sub(r"^( *return )\((\w+(?:, \w+)+)\)$", r"\1\2", line))
    return "\n".join(lines)


def _compiled(function: Any, definition: Any, name: str, calls: Script) -> Any:
    """The rewritten function with the file, lines, globals, closure and defaults of the original.

    All names must keep their meaning.  So it is compiled inside a function whose variables are the names of the
    closure, and inside a class if it is a method.
    """
    code = function.__code__
    around: list[ast.stmt] = [definition]
    free = [variable for variable in code.co_freevars if variable != "__class__"]
    path = function.__qualname__.split(".")
    if len(path) > 1 and path[-2] != "<locals>":
        around = [ast.ClassDef(path[-2], [], [], [definition], [])]
        around[0].type_params = []  # type: ignore[attr-defined]
    elif definition.name not in free:
        around.insert(0, ast.Global([definition.name]))  # a recursive call still finds the global name
    outermost = ast.Module([make_function("around", [name, *free], around)], [])
    ast.fix_missing_locations(outermost)
    compiled = compile(outermost, code.co_filename, "exec", flags=code.co_flags & FUTURE, dont_inherit=True)
    new = next(c for c in _inside(compiled) if c.co_name == definition.name)
    cells = dict(zip(code.co_freevars, function.__closure__ or ())) | {name: types.CellType(calls)}
    new = new.replace(co_qualname=code.co_qualname)
    closure = tuple([cells[variable] for variable in new.co_freevars])
    made = types.FunctionType(new, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _inside(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code objects in a code object, outermost first."""
    level = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    yield from level
    for inner in level:
        yield from _inside(inner)
