"""Unit 03: the kernels of the student's own device, and the meter that counts what they cost."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from minigrad.core.primitive import P
from minigrad.devices.registry import CPU
from minigrad.support.table import counted

from ...compare import Difference, copied, difference, same
from ...feedback import Misused, Wrong, stopped, written
from ...tasks import ROUNDS, FunctionTask, Mistake, ValueTask
from .training import NEEDED, at_work, train

Kernel = Callable[..., Any]
RAW = "a kernel gets NumPy arrays and returns one: use np, not mg"


def f32(*rows: Any) -> Any:
    """An array of the type of all tensors here."""
    return np.array(rows, np.float32)


def samples() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Calls of the seven kernels, as the engine makes them: arrays, Python numbers, attributes."""
    x, y = f32([1.5, -2.0], [3.0, 0.25], [-1.0, 4.0]), f32([2.0, 0.5, -1.0], [1.0, -3.0, 8.0])
    ways = ((1,), False), ((0,), True), ((0, 1), False)
    sums = [{"axis": axis, "keepdims": keepdims, "dtype": None} for axis, keepdims in ways]
    inputs: Any = {"matmul": [(x, y)], "tanh": [(x,), (f32(100.0, -100.0),)], "sum": [(x,)]}
    for name in NEEDED:
        for values in inputs.get(name, [(x, y.T), (x, y[1, :2]), (x, 0.5), (2.0, x)]):
            yield from [(name, values, attrs) for attrs in (sums if name == "sum" else [{}])]


def moves() -> dict[str, Kernel]:
    """The kernels that compute nothing: views, copies between devices, and arrays of one value."""
    return {op.name: CPU.own_kernels[op.name] for op in P if op.kind == "view" or op.name in ("full", "to_device")}


class ChipKernels(ValueTask):
    name = "chip_kernels"
    mistakes: ClassVar[tuple[Mistake, ...]] = ()  # none of those of values

    def given(self) -> dict[str, Any]:
        return {"needed": NEEDED, "moves": moves(), "train": train, "at_work": at_work}

    def right(self) -> dict[str, Kernel]:
        def chip_sum(x: Any, axis: Any, keepdims: bool, dtype: Any) -> Any:
            return np.sum(x, axis=axis, keepdims=keepdims, dtype=dtype)

        return {name: chip_sum if name == "sum" else getattr(np, name) for name in NEEDED}

    def wrong(self, known: Mistake) -> dict[str, Kernel]:
        return {**self.right(), **known.program(self)}

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        self._form(answer)
        for name, values, attrs in samples():
            self._call(name, answer[name], values, attrs)
        return "seven kernels, and not one gradient function. Now make a device with them."

    def _form(self, answer: Any) -> None:
        """Raise `Wrong` where the table itself is wrong."""
        if not isinstance(answer, Mapping):
            raise Wrong(self.name, f"it is {written(answer)}, not a dictionary", 'in braces: {"matmul": ..., ...}')
        for name in answer:
            if name not in {op.name for op in P}:
                raise Wrong(self.name, f"{name!r} is not an operation", f"in quotation marks: {', '.join(NEEDED)}")
        for name in NEEDED:
            if name not in answer:
                raise Misused(self.name, f"{name} is missing", f"the table needs {', '.join(NEEDED)}")
            if not callable(answer[name]):
                hint = "the function itself, without brackets after it: np.add, and not np.add(x, y)"
                raise Wrong(self.name, f"{name} is {written(answer[name])}, not a function", hint)

    def _call(self, name: str, kernel: Kernel, values: tuple[Any, ...], attrs: dict[str, Any]) -> None:
        """Raise `Wrong` where a kernel stops, changes its inputs, or computes something else."""
        given = copied(values)
        call = ", ".join([*map(written, values), *[f"{key}={value!r}" for key, value in attrs.items()]])
        try:
            yours = kernel(*given, **attrs)
        except (TypeError, ValueError) as error:
            raise stopped(self.name, error, self.advice, f"{name}({call})") from None
        if not all(map(same, given, values)):
            hint = "tensors of the program use these arrays: compute a new array, x + y and not x += y"
            raise Wrong(self.name, f"{name} has changed its input", hint)
        check_array(self.name, yours, name)
        right = CPU.own_kernels[name](*values, **attrs)
        problem = difference(yours, right, f"the result of {name}", "by NumPy")
        if problem is not None:
            hints = [each.hint for each in self.mistakes if self._computes(each, name, values, attrs, yours)]
            raise Wrong(self.name, f"{problem}\n  in {name}({call})", next(iter(hints), self.otherwise))

    def _computes(self, known: Mistake, name: str, values: Any, attrs: Any, yours: Any) -> bool:
        """Whether a known wrong kernel gives the same result."""
        try:
            return all(same(yours, each(*values, **attrs)) for each in [known.program(self)[name]])
        except (KeyError, ValueError, TypeError):
            return False


def check_array(task: str, result: Any, kernel: str) -> None:
    """Raise `Wrong` for the result of a kernel that is not an array of float32, as the inputs are."""
    if not isinstance(result, np.ndarray | np.generic):
        what, hint = ("None", "is there a `return`?") if result is None else (f"a {type(result).__name__}", RAW)
        raise Wrong(task, f"{kernel} returned {what}, not an array", hint)
    if result.dtype != np.float32:
        hint = "a kernel keeps the type of its arrays: no astype, and no np.array(..., float)"
        raise Wrong(task, f"{kernel} returned {result.dtype}, and its inputs are float32", hint)


# ---- the meter -------------------------------------------------------------------------------------------------------


def nbytes(*values: Any) -> float:
    """The bytes of the arrays among some values."""
    return float(sum(value.nbytes for value in values if isinstance(value, np.ndarray)))


class Metered(FunctionTask):
    """`metered(op, kernel, bill)` returns a kernel that computes the same, and adds its cost to the bill."""

    name, slips_of = "metered", "metered"

    def vary(self, draw: random.Random) -> None:
        self.launch, self.speed = draw.choice([4, 5, 6, 8]), draw.choice([50, 80, 100, 125])

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        x, y = f32([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]), f32(1.0, 0.5, 2.0)
        yield "add", np.add, [((x, x), {})]
        yield "add", np.add, [((x, y), {}), ((y, y), {})]
        yield "add", np.add, [((np.ones((6, 8), "f"),) * 2, {})]
        yield "multiply", np.multiply, [((x, 0.5), {}), ((2.0, y), {})]
        yield "sum", CPU.own_kernels["sum"], [((x,), {"axis": (1,), "keepdims": True, "dtype": None})]

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        return super().check(lambda op, kernel, calls: self.billed(answer, op, kernel, calls), rounds)

    def billed(self, metered: Callable[..., Any], op: str, kernel: Kernel, calls: Any) -> Any:
        """The results of some calls of a metered kernel, and the bill after them."""
        bill: Counter[str] = Counter()
        runs: list[str] = []

        def noted(*values: Any, **attrs: Any) -> Any:
            runs.append(op)
            return kernel(*values, **attrs)

        try:
            run = metered(op, noted, bill)
            if run is None:
                return None  # a stub, or no `return`
            if not callable(run):
                hint = "write def run(*values, **attrs): ... inside metered, and at its end: return run"
                raise Wrong(self.name, f"it returned {written(run)}, not a function", hint)
            if bill:
                raise Wrong(self.name, "it has added to the bill before the kernel ran",
                            "add to the bill inside the function that you return: def run(*values, **attrs)")
            results = [run(*values, **attrs) for values, attrs in calls]
            if len(runs) != len(calls):
                raise Wrong(self.name, f"in {counted(len(calls), 'call')} the kernel ran {counted(len(runs), 'time')}",
                            "run it once, and keep what it returns: result = kernel(*values, **attrs)")
            return (*results, dict(bill))
        except (TypeError, AttributeError, UnboundLocalError) as error:
            raise stopped(self.name, error, self.advice, self._call((op, kernel, calls))) from None

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        if yours is None:
            raise Wrong(self.name, "it returned None, not a function",
                        "the inner function is missing: at the end of metered, return run")
        *results, bill = yours
        *expected, right = self.right(*args)
        for one, other in zip(results, expected):
            check_array(self.name, one, "your function")
            wrong = difference(one, other, "the result of your function", "by the kernel")
            if wrong is not None:
                return wrong
        return difference(bill, right, "the bill")

    def _call(self, args: tuple[Any, ...]) -> str:
        op, _, calls = args
        shapes = [", ".join(str(getattr(value, "shape", value)) for value in values) for values, _ in calls]
        return f"{op}, called with {', and then with '.join(shapes)}; all arrays are float32"

    def explains(self, known: Mistake, args: tuple[Any, ...], yours: Any) -> bool:
        return same(yours, self.billed(self.wrong(known), *args))

    def right(self, op: str, kernel: Kernel, calls: Any) -> Any:
        return self.billed(self.solution(), op, kernel, calls)

    def metered(self, op: str, kernel: Kernel, bill: Counter[str]) -> Kernel:
        """The right function."""

        def run(*values: Any, **attrs: Any) -> Any:
            result = kernel(*values, **attrs)
            bill[op] += self.launch + nbytes(*values, result) / self.speed  # type: ignore[assignment]
            return result

        return run

    def solution(self) -> Callable[..., Any]:
        return self.metered
