"""Transformations of functions: `grad`, `vjp`, `jacobian`, `hessian`, `hvp`, built from the walk, `jvp` and `vmap`.

The functions take tensors, nested containers of tensors, and modules.  Transformations can be nested, and change no
`.grad`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..core.mode import current_mode, switch
from ..core.node import Leaf, Node, topological_order
from ..core.tensor import Tensor, wrap
from ..core.tree import flatten
from ..ops.creation import eye, zeros_like
from ..ops.view import reshape
from ..support.errors import GradError
from ..support.words import a_type
from .arrays import are_arrays, handed_back, with_tensors
from .batching import vmap
from .forward import check_arguments, jvp
from .reverse import pulled_back


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, allow_unused: bool = False
) -> Callable[..., Any]:
    """A function that returns the value of `function` and its gradient by the arguments `argnums`.

    A gradient has the structure of its argument; it is None for integers.  Python floats and NumPy's arrays in an
    argument become tensors.  With `has_aux` the function returns a pair: the number to differentiate, and anything
    else.  The value is then this pair.  No gradient flows through a Python number that the function makes from a
    tensor: a `GradientWarning` names the line.

    >>> value, gradient = mg.value_and_grad(lambda p: (p["w"] ** 2).sum())({"w": mg.asarray([1.0, 3.0])})
    >>> value.item(), gradient["w"].tolist()
    (10.0, [2.0, 6.0])
    """
    several = isinstance(argnums, (tuple, list))
    chosen = tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)

    def evaluated(*args: Any, **kwargs: Any) -> Any:
        given = tuple([_argument(args, i) for i in chosen])
        parts, rebuild = flatten(with_tensors(given))
        with switch(grad=True):
            inputs = [_as_input(t) for t in parts]
            if not (allow_unused or any(t.tracked for t in inputs)):
                raise _nothing_to_differentiate(given, inputs)
            replaced = dict(zip(chosen, rebuild(inputs)))
        with switch(grad=True, grad_inputs=_nodes_of(inputs)):
            result = function(*[replaced.get(i, a) for i, a in enumerate(args)], **kwargs)
        output, aux = result if has_aux else (result, None)
        found = _pulled_back([output], [None], inputs, "grad", allow_unused)
        gradient = rebuild(found)
        value = _unlinked((output, aux) if has_aux else output, inputs)
        return handed_back((value, gradient if several else gradient[0]), are_arrays(given))

    return evaluated


def grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, allow_unused: bool = False
) -> Callable[..., Any]:
    """A function that computes the gradient of `function`, which returns one number, by the arguments `argnums`.

    >>> cube = lambda x: x**3
    >>> mg.grad(cube)(mg.asarray(2.0)).item(), mg.grad(mg.grad(cube))(mg.asarray(2.0)).item()
    (12.0, 12.0)
    >>> mg.grad(cube)(2.0).item()
    12.0
    """
    both = value_and_grad(function, argnums, has_aux, allow_unused)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def vjp(function: Callable[..., Any], *args: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of a function, and a function from gradients of its outputs to gradients of its inputs.

    >>> value, back = mg.vjp(lambda x: x * 2, mg.asarray([1.0, 2.0]))
    >>> back(mg.asarray([1.0, 10.0]))[0].tolist()
    [2.0, 20.0]
    """
    arrays = are_arrays(args)
    parts, rebuild = flatten(with_tensors(args))
    with switch(grad=True):
        inputs = [_as_input(t) for t in parts]
    with switch(grad=True, grad_inputs=_nodes_of(inputs)):
        result = function(*rebuild(inputs))
        outputs, _ = flatten(result)

    def back(cotangents: Any) -> Any:
        given = flatten(with_tensors(cotangents))[0]
        if len(given) != len(outputs):
            raise GradError(
                "vjp: each output of the function needs a gradient, a tensor",
                expect=f"{len(outputs)} of shapes {[o.shape for o in outputs]}",
                actual=f"{len(given)} of shapes {[g.shape for g in given]}",
            )
        pairs = [(o, g) for o, g in zip(outputs, given) if o.tracked]
        found = _pulled_back([o for o, _ in pairs], [g for _, g in pairs], inputs, "vjp", True, retain=True)
        return handed_back(rebuild(found), arrays)

    return handed_back(_unlinked(result, inputs), arrays), back


def _argument(args: tuple[Any, ...], index: int) -> Any:
    if index >= len(args):
        raise GradError(f"grad: argnums names argument {index}, and {len(args)} were given")
    return args[index]


def _as_input(tensor: Tensor) -> Tensor:
    """A handle on an argument at which the walk can stop: a new leaf, or a view if the argument has a history."""
    interpreter = current_mode().interpreter
    tensor = tensor if interpreter is None else interpreter.lift(tensor)
    if tensor.dtype.kind != "f":
        return tensor
    if tensor.tracked:
        return reshape(tensor, tensor.shape)
    leaf = wrap(tensor._data, tensor.device)
    leaf.requires_grad = True
    return leaf


def _nothing_to_differentiate(arguments: tuple[Any, ...], tensors: list[Tensor]) -> GradError:
    """The error for arguments without a tensor of floats, such as integers or an object that is not a container."""
    return GradError(
        "grad: the argument to differentiate by has no tensor of floats",
        expect="a tensor of floats, or a tuple, NamedTuple, list, dict or module with one",
        actual=f"{tensors[0].dtype}" if tensors else ", ".join([a_type(each) for each in arguments]),
        hint="x.astype(mg.float32), or argnums=..." if tensors else "argnums=... numbers the arguments",
    )


def _nodes_of(inputs: list[Tensor]) -> tuple[Node, ...]:
    return tuple([t.node for t in inputs if t.tracked])


def _pulled_back(
    outputs: list[Any], cotangents: list[Any], inputs: list[Tensor], name: str, allow_unused: bool, retain: bool = False
) -> list[Tensor | None]:
    """The gradients of outputs with respect to inputs; with a history, if an outer transformation needs one."""
    for output in outputs:
        _check_tensor(output, name, "has_aux=True if it returns more than the number to differentiate")
    record = current_mode().grad and _has_other_leaves(outputs, inputs)
    if allow_unused and not any(o.tracked for o in outputs):
        return [None] * len(inputs)
    return pulled_back(name, outputs, cotangents, inputs, record, record or retain, allow_unused)


def _check_tensor(output: Any, name: str, hint: str | None = None) -> Tensor:
    if not isinstance(output, Tensor):
        raise GradError(f"{name}: the function must return a tensor, not {type(output).__name__}", hint=hint)
    return output


def _has_other_leaves(outputs: list[Tensor], inputs: list[Tensor]) -> bool:
    """Whether the outputs depend on leaves other than the inputs.  Then their gradients need a history too.

    A leaf without a tensor counts for nothing: it was the input of a transformation inside, which has ended.
    """
    mine = set(_nodes_of(inputs))
    order = topological_order([o.node for o in outputs if o.tracked])
    return any(isinstance(node, Leaf) and node not in mine and node.tensor() is not None for node in order)


def _unlinked(result: Any, inputs: list[Tensor]) -> Any:
    """The values without the history of this gradient; histories of other leaves stay if gradients are on."""
    outputs, rebuild = flatten(result)
    some = current_mode().grad and _has_other_leaves(outputs, inputs)
    return rebuild([o if not o.tracked or (some and _has_other_leaves([o], inputs)) else o.detach() for o in outputs])


def _rows(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """All unit vectors of a space, as a batch."""
    return reshape(eye(math.prod(shape), dtype=like.dtype, device=like.device), (-1, *shape))


def jacobian(function: Callable[..., Any], argnums: int = 0, mode: str = "reverse") -> Callable[..., Tensor]:
    """A function that computes the matrix of all derivatives: shape of the output, then shape of the input.

    One batch computes all rows.  `mode="reverse"` computes a row for each output, `"forward"` a column for each input.

    >>> mg.jacobian(lambda x: x * x)(mg.asarray([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    if mode not in ("reverse", "forward"):
        raise GradError(f"jacobian: mode is 'reverse' or 'forward', not {mode!r}")

    def of(*args: Any) -> Any:
        given = _argument(args, argnums)
        x: Tensor = with_tensors(given)

        def of_x(new: Tensor) -> Tensor:
            value = function(*[new if i == argnums else a for i, a in enumerate(args)])
            return _check_tensor(value, "jacobian", "np.stack([x, y]) in place of [x, y]")

        if mode == "forward":
            columns = vmap(lambda v: jvp(of_x, (x,), (v,))[1])(_rows(x.shape, x))
            rows = reshape(columns.permute_dims((*range(1, columns.ndim), 0)), (*columns.shape[1:], *x.shape))
        else:
            value, back = vjp(of_x, x)
            flat = vmap(lambda g: zeros_like(x) if (row := back(g)[0]) is None else row)(_rows(value.shape, value))
            rows = reshape(flat, (*value.shape, *x.shape))
        return handed_back(rows, are_arrays(given))

    return of


def hessian(function: Callable[..., Any], argnums: int = 0) -> Callable[..., Tensor]:
    """A function that computes the matrix of second derivatives of a number: shape of the input, twice.

    >>> mg.hessian(lambda x: (x**3).sum())(mg.asarray([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacobian(grad(function, argnums), argnums, mode="forward")


def hvp(function: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """The Hessian of a number times a vector, by forward mode over reverse mode.

    It costs as much as a few gradients: the matrix is not computed.

    >>> mg.hvp(lambda x: (x**3).sum(), (mg.asarray([1.0, 2.0]),), (mg.asarray([1.0, 1.0]),)).tolist()
    [6.0, 12.0]
    """
    check_arguments("hvp", primals=primals, tangents=tangents)
    argnums = tuple(range(len(primals)))
    result = jvp(grad(function, argnums), primals, tangents)[1]
    return result[0] if len(primals) == 1 else result
