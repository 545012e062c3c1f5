"""Control flow on tensors: `cond`, `while_loop`, `fori_loop` and `scan`.

In eager mode they run as an `if` and as loops in Python, and gradients flow through them as through any Python code.
While a computation is traced its values are not known, so each of them becomes one node, which contains the graphs of
its branches or of its body (`compile/control`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autodiff.batching import Batched, Examples, Vectorised
from ..autodiff.custom import call_with_gradient
from ..core.dtypes import int64
from ..core.mode import branch, current_mode, switch
from ..core.primitive import Primitive
from ..core.state import State
from ..core.tensor import NUMBERS, Tensor, as_tensor, wrap
from ..core.tree import flatten, structure
from ..ops.creation import zeros
from ..ops.declare import declare
from ..ops.elementwise import where
from ..ops.joining import stack
from ..ops.write import apart
from ..support.errors import ConversionError, DtypeError, ShapeError
from ..support.words import a_type, whole

VALUES = (int, float, bool, np.ndarray, np.generic)  # become tensors when they are carried or returned


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """`true_fun(*operands)` if the predicate is true, else `false_fun(*operands)`.

    Both return tensors of the same shapes and dtypes in the same containers.  Eager mode runs only one of them.  The
    results have memory of their own: a write to one of them does not change an operand.

    >>> slope = lambda x: mg.cond(x > 0, lambda x: x, lambda x: 0.5 * x, x)
    >>> slope(mg.asarray(2.0)).item(), slope(mg.asarray(-2.0)).item()
    (2.0, -1.0)
    """
    _check_functions("cond", true_fun=true_fun, false_fun=false_fun)
    if pred.__class__ is bool or isinstance(pred, np.bool_):  # known in every mode
        chosen = Values((true_fun if pred else false_fun)(*operands))
        return chosen.rebuild(chosen.tensors)
    test = predicate("cond", pred)
    control = current_mode().control
    if control.flow is not None:
        return control.flow.cond(test, true_fun, false_fun, operands)
    some, every = control.outcomes(test)
    if some == every:
        with branch(some):
            chosen = Values((true_fun if some else false_fun)(*operands))
            return chosen.rebuild([*map(apart, chosen.tensors)])  # with memory of their own, as in a trace
    with control.sealed("cond: the predicate differs between examples, and a branch"):
        with control.taken_by(test):
            chosen = Values(true_fun(*operands))
        with control.taken_by(~test):
            other = Values(false_fun(*operands))
        return chosen.rebuild([where(test, a, b) for a, b in zip(chosen.tensors, same_results(chosen, other))])


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: Any, max_steps: int | None = None
) -> Any:
    """Repeat `value = body_fun(value)`, starting with `init`, while `cond_fun(value)` is true; return the last value.

    The body returns the same containers, shapes and dtypes as it is given.  The loop ends after `max_steps` rounds at
    the latest.  Under `jit` only a loop with `max_steps` has a gradient: the memory for the values of all rounds
    is allocated before the first.

    >>> mg.while_loop(lambda x: x < 100, lambda x: x * x, mg.asarray(3.0)).item()
    6561.0
    """
    _check_functions("while_loop", cond_fun=cond_fun, body_fun=body_fun)
    if max_steps is not None:
        max_steps = _count("while_loop: max_steps", max_steps)
    carry = Values(init, _device_of(init))
    control = current_mode().control
    if control.flow is not None:
        return control.flow.while_loop(cond_fun, body_fun, carry, max_steps)
    now, steps = [t.copy() for t in carry.tensors], 0
    while max_steps is None or steps < max_steps:
        test = predicate("while_loop: cond_fun", cond_fun(carry.rebuild(now)))
        some, every = control.outcomes(test)
        if not some:
            break
        if every:
            now = [*map(apart, carry.again("while_loop", body_fun(carry.rebuild(now))))]
        else:
            with control.sealed("while_loop: the condition differs between examples, and the body"):
                with control.taken_by(test):
                    new = carry.again("while_loop", body_fun(carry.rebuild([t.copy() for t in now])))
                now = [where(test, a, b) for a, b in zip(new, now)]
        steps += 1
    return carry.rebuild(now)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init: Any) -> Any:
    """Repeat `value = body_fun(i, value)` for each i from `lower` to `upper - 1`; return the last value.

    With Python integers as bounds it is a `scan`, which has gradients in every mode; with tensors it is a `while_loop`.

    >>> mg.fori_loop(0, 5, lambda i, total: total + i, 0).item()
    10
    """
    _check_functions("fori_loop", body_fun=body_fun)
    low, high = _bound("lower", lower), _bound("upper", upper)
    if isinstance(low, int) and isinstance(high, int):
        device, count = _device_of(init), max(0, high - low)
        carry = Values(init, device)
        if count and current_mode().control.flow is None:
            now = [t.copy() for t in carry.tensors]
            for i in range(low, high):
                now = [*map(apart, carry.again("fori_loop", body_fun(as_tensor(i, device), carry.rebuild(now))))]
            return carry.rebuild(now)

        def one_round(state: Any, _: None) -> Any:
            i, value = state
            return (i + 1, carry.rebuild(carry.again("fori_loop", body_fun(i, value)))), None

        begin = as_tensor(low, device), init  # the number is carried along: all numbers would need memory
        return _scan("fori_loop", one_round, begin, Values(None), count, False)[0][1]
    start, stop = as_tensor(low), as_tensor(high)
    start = start.astype(stop.dtype, copy=False) if isinstance(low, int) else start

    def next_round(state: Any) -> Any:
        i, value = state
        return i + 1, body_fun(i, value)

    return while_loop(lambda state: state[0] < stop, next_round, (start, init))[1]


def scan(
    f: Callable[[Any, Any], Any], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False
) -> tuple[Any, Any]:
    """Repeat `carry, y = f(carry, x)` for each x along the first dimension of `xs`; return the last carry and all y.

    The y are stacked.  Without `xs` there are `length` rounds, and x is None.  With `reverse` the rounds go from the
    last x to the first, and the y have the order of the x.

    >>> total, sums = mg.scan(lambda carry, x: (carry + x, carry + x), 0.0, mg.asarray([1.0, 2.0, 3.0]))
    >>> total.item(), sums.tolist()
    (6.0, [1.0, 3.0, 6.0])
    """
    _check_functions("scan", f=f)
    return _scan("scan", f, init, Values(xs), length, reverse)


def _scan(name: str, f: Any, init: Any, xs: Values, length: Any, reverse: bool) -> tuple[Any, Any]:
    carry = Values(init, _device_of((init, xs.tensors)))
    count = _rounds(name, xs, length)
    control = current_mode().control
    if control.flow is not None:
        recorded: tuple[Any, Any] = control.flow.scan(name, f, carry, xs, count, reverse)
        return recorded
    now, found = [t.copy() for t in carry.tensors], list[Values]()
    if not count:
        return carry.rebuild(now), _no_rounds(name, f, carry, xs)
    rows = [_rows(x, count) for x in xs.tensors]
    for i in range(count - 1, -1, -1) if reverse else range(count):
        pair = f(carry.rebuild(now), xs.rebuild([row[i] for row in rows]))
        new, y = carry_and_result(name, pair)
        now, made = [*map(apart, carry.again(name, new))], Values(y)
        if found and found[0].structure != made.structure:
            same_results(found[0], made, name)
        if made.tensors or not found:  # many rounds without results keep nothing
            found.append(made)
    if reverse:
        found.reverse()
    ys = [stack(list(column)) for column in zip(*[y.tensors for y in found])]
    return carry.rebuild(now), found[0].rebuild(ys)


def _no_rounds(name: str, f: Any, carry: Values, xs: Values) -> Any:
    """The stacked results if there are no iterations.  A batch of no examples gives their shapes."""
    empty = Vectorised(0)
    control = Examples(empty)
    with switch(interpreter=empty, control=control, state=Unchanged()), control.sealed(f"{name}: the body"):
        once = [t.copy() for t in carry.tensors]
        given = [wrap(Batched(empty, x, True), x.device) for x in xs.tensors]
        new, y = carry_and_result(name, f(carry.rebuild(once), xs.rebuild(given)))
        carry.again(name, new)
        values = Values(y)
        shapes = [(t.shape, t.dtype, t.device) for t in values.tensors]
    return values.rebuild([zeros((0, *shape), dtype, device) for shape, dtype, device in shapes])


class Unchanged(State):
    """Python's state, except that drawing numbers does not change a generator."""

    def take_blocks(self, generator: Any, count: int) -> tuple[Any, int]:
        state = generator.get_state()
        return state["key"], state["block"]


def _rows(x: Tensor, count: int) -> Sequence[Tensor]:
    """The elements along the first dimension, as separate tensors.

    If `x` has a history they are one operation: the gradient of each element alone would be as large as `x`.
    """
    def split(x: Tensor) -> Any:
        return tuple([x[i].copy() for i in range(count)]), None

    if not x.tracked or current_mode().interpreter is not None:
        return split(x)[0]  # type: ignore[no-any-return]
    return call_with_gradient([x], split, lambda kept, g: (stack(list(g)),))  # type: ignore[no-any-return]


# The primitives.  Their attributes hold functions, whose rules are in `compile/control/gradients.py` ------------------


def _infer_cond(pred: Any, *inputs: Any, then: Any, otherwise: Any, draws: Any) -> Any:
    return tuple(zip(*then.results)) or ((), ())


def _infer_while_loop(*inputs: Any, condition: Any, body: Any, consts: int, limit: Any, keep: bool) -> Any:
    carry = [(x.shape, x.dtype) for x in inputs[consts:]]
    kept = [((limit, *shape), dtype) for shape, dtype in carry] if keep else []
    return tuple(zip(*carry, ((), int64), *kept))


def _infer_scan(
    *inputs: Any, body: Any, consts: int, carries: int, length: int, reverse: bool, counted: bool, keep: bool,
    draws: Any,
) -> Any:
    results = body.results
    each = [*results[carries:], *(results[:carries] if keep else [])]
    return tuple(zip(*results[:carries], *[((length, *shape), dtype) for shape, dtype in each])) or ((), ())


def _gradient_of_loop(g: Any, inputs: Any, out: Any, node: Any, index: int) -> Any:
    return node.attrs["body"].rules.gradient_of_loop(g, inputs, out, node, index)


for _name, _infer, _formula in (
    ("while_loop", _infer_while_loop, r"x \leftarrow f(x) \text{ while } p(x)"),
    ("scan", _infer_scan, r"c_{i+1}, y_i = f(c_i, x_i)"),
):
    declare(Primitive(
        _name, "structural", ("*inputs",), _infer, {"inputs": _gradient_of_loop}, promotes=(), formula=_formula,
        batch=lambda op, inputs, many, size, attrs: attrs["body"].rules.batch_loop(inputs, many, size, attrs),
        jvp=lambda primals, tangents, **attrs: attrs["body"].rules.push_loop(primals, tangents, attrs),
    ))
declare(Primitive(
    "cond", "structural", ("pred", "*inputs"), _infer_cond,
    {"inputs": lambda g, pred, inputs, node, index: node.attrs["then"].rules.gradient_of_cond(
        g, pred, inputs, node, index)},
    promotes=(), formula=r"p \mathbin{?} f(x) : g(x)",
    batch=lambda op, inputs, many, size, attrs: attrs["then"].rules.batch_cond(inputs, many, size, attrs),
    jvp=lambda primals, tangents, **attrs: attrs["then"].rules.push_cond(primals, tangents, attrs),
))


# Containers, and errors about them ------------------------------------------------------------------------------------


class Values:
    """A container taken apart: its tensors (made of its numbers and arrays too), and its structure."""

    def __init__(self, tree: Any, device: Any = None) -> None:
        given, self.rebuild = flatten(tree, VALUES)
        self.structure = structure(tree, VALUES)
        self.tensors = [as_tensor(value, device) for value in given]
        self.weak = [value.__class__ in NUMBERS for value in given]  # Python numbers, whose dtype adapts

    def like(self, other: Values) -> list[Tensor]:
        """The tensors; a Python number has the dtype and device of the tensor in its place in `other`."""
        return [
            t.to(like.device).astype(like.dtype, copy=False)
            if weak and KINDS.index(t.dtype.kind) <= KINDS.index(like.dtype.kind) else t
            for t, weak, like in zip(self.tensors, self.weak, other.tensors)
        ]

    def again(self, name: str, tree: Any) -> list[Tensor]:
        """The tensors that a body returned, if they have the structure, shapes and dtypes of these."""
        new = Values(tree)
        if new.structure != self.structure:
            raise ShapeError(
                f"{name}: the body returns other containers than it was given",
                expect=self.text(), actual=new.text(), hint="return the carry with the same parts in the same order",
            )
        fitted = new.like(self)
        for number, (t, old) in enumerate(zip(fitted, self.tensors)):
            if (t.shape, t.dtype, t.device) != (old.shape, old.dtype, old.device):
                raise (DtypeError if t.shape == old.shape else ShapeError)(
                    f"{name}: the body changes tensor {number} of the carry from {_kind(old)} to {_kind(t)}",
                    expect=self.text(), actual=new.text(),
                    hint=f"start with the final type, or convert back: .astype(mg.{old.dtype}), .reshape(...)",
                )
        return fitted

    def text(self) -> str:
        """The container with shapes and dtypes in place of its tensors."""
        return repr(self.rebuild([_Text(_kind(t)) for t in self.tensors]))


KINDS = "biuf"  # of dtypes: a Python number takes the dtype of a tensor of the same kind or a later one


class _Text(str):
    def __repr__(self) -> str:
        return str(self)


def _device_of(tree: Any) -> Any:
    """The device of a container's tensors, for the numbers beside them; None if it has no tensors."""
    tensors = flatten(tree)[0]
    return tensors[0].device if tensors else None


def _kind(tensor: Tensor) -> str:
    return f"{tensor.dtype} {tensor.shape}"


def same_results(one: Values, other: Values, name: str = "cond") -> list[Tensor]:
    """The tensors of `other`, if it differs from `one` in values only."""
    fitted = other.like(one)
    wrong = one.structure != other.structure
    if not wrong and all((a.shape, a.dtype) == (b.shape, b.dtype) for a, b in zip(one.tensors, fitted)):
        return fitted
    returned, first, second = (
        ("the branches return", "true_fun", "false_fun") if name == "cond" else
        ("f returns, from round to round,", "the first time", "then")
    )
    same_shapes = [v.shape for v in one.tensors] == [v.shape for v in other.tensors]
    raise (DtypeError if same_shapes and not wrong else ShapeError)(
        f"{name}: {returned} different {'containers' if wrong else 'shapes or dtypes'}",
        expect=f"the same as {first}: {one.text()}", actual=f"{second}: {other.text()}",
        hint="x.astype(...), mg.broadcast_to(x, shape), or mg.zeros_like(x) for a missing tensor",
    )


def carry_and_result(name: str, pair: Any) -> tuple[Any, Any]:
    """The new carry and the result that `f` returned."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ConversionError(
            f"{name}: f(carry, x) returns a pair, the new carry and a result for this x",
            actual=f"{type(pair).__name__}" + (f" of {len(pair)}" if isinstance(pair, (tuple, list)) else ""),
            hint="return carry, y; or return carry, None",
        )
    return pair[0], pair[1]


def predicate(name: str, value: Any) -> Tensor:
    """The predicate as a tensor, if it is a single bool."""
    if value.__class__ is bool or isinstance(value, np.bool_):
        return as_tensor(bool(value))
    if not isinstance(value, Tensor):
        raise ConversionError(f"{name}: the predicate is a bool, not {a_type(value)}",
                              expect="a bool tensor of shape ()", hint="x > 0, x.any(), x.all()")
    if value.shape:
        raise ShapeError(f"{name}: the predicate is one bool, and this tensor has shape {value.shape}",
                         expect="shape ()", hint="x.any(), x.all(); mg.where chooses element by element")
    if value.dtype.kind != "b":
        raise DtypeError(f"{name}: the predicate is a bool, and this tensor is {value.dtype}", hint="x != 0, x > 0")
    return value


def _check_functions(name: str, **functions: Any) -> None:
    for parameter, function in functions.items():
        if not callable(function):
            raise ConversionError(f"{name}: {parameter} is a function, not {a_type(function)}",
                                  hint=f"a lambda for {parameter}")


def _count(name: str, value: Any) -> int:
    count = None if isinstance(value, bool) else whole(value, 0)
    if count is None:
        raise ConversionError(f"{name} is an integer, 0 or more, not {value!r}")
    return count


def _bound(name: str, value: Any) -> Any:
    """A bound of `fori_loop`: an int if its value is known, else an integer tensor."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        if abs(int(value)) >= 1 << 63:
            raise ConversionError(f"fori_loop: {name} is an int64, and {value} does not fit")
        return int(value)
    if not isinstance(value, Tensor) or value.dtype.kind not in "iu":
        actual = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise DtypeError(f"fori_loop: {name} is an integer", actual=str(actual), hint="int(x), or x.astype(mg.int64)")
    if value.shape:
        raise ShapeError(f"fori_loop: {name} is one integer, and this tensor has shape {value.shape}")
    return int(value) if current_mode().interpreter is None else value


def _rounds(name: str, xs: Values, length: Any) -> int:
    """The number of rounds, from `length` and the first dimensions of `xs`."""
    count = None if length is None else _count(f"{name}: length", length)
    if any(not x.shape for x in xs.tensors):
        raise ShapeError(f"{name}: a tensor in xs has no dimension to loop over",
                         hint="f can use a tensor that is the same in all rounds directly")
    lengths = {x.shape[0] for x in xs.tensors}
    if len(lengths | ({count} - {None})) > 1:
        raise ShapeError(
            f"{name}: xs and length give different numbers of rounds",
            expect="equal first dimensions" + ("" if count is None else f" of size {count}, which is `length`"),
            actual=xs.text(),
        )
    if count is None and not lengths:
        raise ConversionError(f"{name}: without xs, length gives the number of rounds", hint="length=10")
    return lengths.pop() if lengths else count  # type: ignore[return-value]
