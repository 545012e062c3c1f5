"""Where each piece of a student's framework goes in the engine, and what it does there in a training step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from inspect import unwrap
from time import perf_counter
from typing import Any, NamedTuple

from minigrad.core.mode import current_mode, switch
from minigrad.core.override import override_of, overriding
from minigrad.core.tensor import Tensor
from minigrad.ops.composite import COMPOSED

from ..feedback import at_its_line
from ..interpreting import Students, dispatcher, emitter
from ..swapping import Swapped, backward, compiler_pass, node_order, rule, scheduler
from ..units.u02_arrays.striding import views
from ..units.u09_eager_costs.operators import operator
from ..units.u10_graph_mode.student_guards import guard
from ..units.u11_fusion.equations import with_rules
from ..units.u11_fusion.league import fused_by
from ..units.u11_fusion.merging import as_pass
from ..units.u12_parallelism.schedules import in_turns


class Clock:
    """The seconds in a student's functions, without those of what they let the engine do."""

    def __init__(self) -> None:
        self.owners = [False]  # whether the code that runs is the student's
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self.seconds = {True: 0.0, False: 0.0}
        self.since = perf_counter()

    def _turn(self) -> None:
        now = perf_counter()
        self.seconds[self.owners[-1]] += now - self.since
        self.since = now

    def _owned(self, function: Callable[..., Any], yours: bool) -> Callable[..., Any]:
        @wraps(function)
        def run(*args: Any, **options: Any) -> Any:
            self._turn()
            self.owners.append(yours)
            try:
                return function(*args, **options)
            finally:
                self._turn()
                self.owners.pop()

        return run

    def yours(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the student."""
        return self._owned(function, True)

    def engines(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the engine that a function of the student calls."""
        return self._owned(function, False)

    def share(self) -> float:
        """The student's part of the time since the beginning."""
        self._turn()
        return self.seconds[True] / sum(self.seconds.values())


Enter = Callable[..., AbstractContextManager[Swapped]]


class Piece(NamedTuple):
    """A function of the student, or several that belong together, and how they enter the engine."""

    tasks: tuple[str, ...]
    job: str  # what they do in a step: see JOBS
    enter: Enter  # (clock, *functions)


def _composed(name: str, clock: Clock, function: Callable[..., Any], fits: Callable[..., bool]) -> Any:
    """Let a student's function be a composed function of the library, where the arguments are those of its task."""
    own, swapped = unwrap(COMPOSED[name]), Swapped(function.__name__)
    mine, before = clock.yours(function), override_of(own) or own

    def composed(*args: Any, **options: Any) -> Any:
        if not fits(*args, **options):
            return before(*args, **options)
        swapped.calls += 1
        with at_its_line(function.__name__):
            return mine(*args, **options)

    return _entered(overriding(own, composed), swapped)


@contextmanager
def _entered(block: Any, swapped: Swapped) -> Iterator[Swapped]:
    with block, switch(interpreter=current_mode().interpreter or Students()):
        yield swapped


def _recorder(clock: Clock, emit: Callable[..., Any]) -> AbstractContextManager[Swapped]:
    @wraps(emit)
    def recording(op: Any, inputs: list[Any]) -> Any:
        op.compute = clock.engines(op.compute)
        return emit(op, inputs)

    return emitter(clock.yours(recording))


def _walker(clock: Clock, walk: Callable[..., Any]) -> AbstractContextManager[Swapped]:
    @wraps(walk)
    def walking(result: Any, gradients: Any, passes_back: Any) -> None:
        walk(result, gradients, clock.engines(passes_back))

    return backward(clock.yours(walking))


def _rule(primitive: str, where: Callable[..., bool] | None = None) -> Enter:
    return lambda clock, function: rule(primitive, clock.yours(function), where)


def _are_tables(out: Tensor, a: Any, b: Any) -> bool:
    return a.ndim == b.ndim == 2


def _first_is_whole(out: Tensor, a: Any, b: Any) -> bool:
    """The task of `add_grad` says that the first input has the shape of the result."""
    return isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape == out.shape


def _are_tensors(out: Tensor, *inputs: Any) -> bool:
    return all(isinstance(each, Tensor) for each in inputs)


def _convolution(clock: Clock, convolve: Callable[..., Any]) -> AbstractContextManager[Swapped]:
    @wraps(convolve)
    def conv2d(x: Tensor, weight: Tensor, bias: Tensor | None = None, *usual: Any, **more: Any) -> Tensor:
        maps = convolve(x[:, 0], weight[:, 0]).permute_dims((0, 3, 1, 2))
        return maps if bias is None else maps + bias.reshape(1, -1, 1, 1)

    def fits(x: Tensor, weight: Tensor, bias: Any = None, *given: Any, **more: Any) -> bool:
        usual = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
        options = dict(zip(usual, given)) | more
        is_usual = all(value in (usual[name], (usual[name],) * 2) for name, value in options.items())
        return is_usual and x.ndim == 4 and weight.shape[1:] == (1, 3, 3)

    return _composed("conv2d", clock, conv2d, fits)


def _norm(clock: Clock, norm: Callable[..., Any]) -> AbstractContextManager[Swapped]:
    @wraps(norm)
    def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, *rest: Any, **options: Any) -> Tensor:
        return norm(x, weight, bias)  # type: ignore[no-any-return]

    def fits(x: Tensor, weight: Any = None, bias: Any = None, axis: int = -1, eps: float = 0.0) -> bool:
        return axis in (-1, x.ndim - 1) and weight is not None and bias is not None

    return _composed("layer_norm", clock, layer_norm, fits)


def _softmax(clock: Clock, softmax: Callable[..., Any]) -> AbstractContextManager[Swapped]:
    @wraps(softmax)
    def of_rows(x: Tensor, axis: int = -1) -> Tensor:
        return softmax(x)  # type: ignore[no-any-return]

    return _composed("softmax", clock, of_rows, lambda x, axis=-1: axis in (-1, x.ndim - 1))


JOBS = {  # what a training does, and in which room of the library
    "views": ("strides of views", "ops"), "layers": ("layers and activations", "nn"),
    "kernels": ("kernels chosen", "devices"), "nodes": ("operations recorded", "core"),
    "order": ("orders of the nodes", "core"), "rules": ("gradients by rules", "autodiff"),
    "walk": ("backward passes", "autodiff"), "blocks": ("blocks run by a plan", "autodiff"),
    "updates": ("parameters updated", "optim"), "steps": ("training steps", "train"),
    "guards": ("traces guarded", "compile"), "passes": ("passes over the graph", "compile"),
    "kernels_made": ("programs divided", "compile"), "turns": ("programs scheduled", "compile"),
    "sums": ("sums over all ranks", "distributed"),
}
EAGER = (  # the later ones are entered inside of the earlier ones
    Piece(("dispatch",), "kernels", lambda clock, dispatch: dispatcher(clock.yours(dispatch))),
    Piece(("emit",), "nodes", _recorder),
    Piece(("transposed", "broadcasted", "windowed"), "views", lambda clock, *three: views(*map(clock.yours, three))),
    Piece(("topological_order",), "order", lambda clock, order: node_order(clock.yours(order))),
    Piece(("mul_grad",), "rules", _rule("multiply", _are_tensors)),
    Piece(("add_grad",), "rules", _rule("add", _first_is_whole)),
    Piece(("matmul_grad",), "rules", _rule("matmul", _are_tables)),
    Piece(("sigmoid_grad",), "rules", _rule("sigmoid")),
    Piece(("maximum_grad",), "rules", _rule("maximum")),
    Piece(("walk_back",), "walk", _walker),
    Piece(("convolve",), "layers", _convolution),
    Piece(("gelu", "gelu_backward"), "layers", lambda clock, *two: operator("gelu", *two)),
    Piece(("softmax",), "layers", _softmax),
    Piece(("norm",), "layers", _norm),
)
COMPILED = (
    Piece(("guard",), "guards", lambda clock, function: guard(function)),
    Piece(("my_rules",), "passes", lambda clock, rules: compiler_pass("simplify", with_rules(rules))),
    Piece(("merge_same",), "passes", lambda clock, merge: compiler_pass("common", as_pass(merge))),
    Piece(("my_fusion",), "kernels_made", lambda clock, function: fused_by(function)),
    Piece(("list_schedule",), "turns", lambda clock, function: scheduler(in_turns(function))),
)
