"""The functions that rewritten code calls: at run time, each either runs Python code or records a node.

If the condition is a Python value or a tensor with a known value, Python runs the branch, or the turns of the loop.  If
it is a recorded tensor without a value, the whole statement is recorded (`recorded.py`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..control.flow import scan, while_loop
from ..core.mode import current_mode
from ..core.tensor import Tensor
from ..ops.elementary import logical_and, logical_not, logical_or
from ..support.errors import ConversionError, TraceError
from .blocks import AUGMENTED, Block
from .kinds import Undefined, as_number, is_number
from .recorded import Carry, Choice, packed

Python = Callable[..., Any]


class TensorRange:
    """`range` with tensors as bounds: a loop over it can only be recorded."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start, self.step = start, step
        self.count = -((stop - start) // -step)  # rounded up

    def __iter__(self) -> Any:
        raise TraceError(
            "range() of a tensor without a value, in a loop that stays plain Python",
            hint="for i in range(n), without `try` or other statements that must stay plain Python in the loop",
        )


class Script:
    """The functions that a rewritten function calls by one name, and its blocks."""

    def __init__(self, filename: str) -> None:
        self.filename = filename
        self.blocks: dict[str, Block] = {}  # by the names of the functions that they have become

    def __repr__(self) -> str:
        return "<functions of mg.script>"

    def _block(self, function: FunctionType) -> Block:
        known = self.blocks.get(function.__name__)
        line = function.__code__.co_firstlineno
        return known or Block("conditional expression", self.filename, line, [""], [], later={""})

    # statements -------------------------------------------------------------------------------------------------------

    def cond(self, test: Any, if_true: Any, if_false: Any, *given: Any) -> Any:
        """The outputs of one of two blocks."""
        known = decided(test)
        if known is not None:
            return (if_true if known else if_false)(*given)
        chosen = Choice(self._block(if_true), (if_true, if_false), given)
        return chosen.decided(truth(test), (if_true, if_false))

    def while_loop(self, condition: Python, body: Any, *state: Any) -> Any:
        """The variables of a loop after its end."""
        many = len(state) != 1
        while True:
            known = decided(condition(*state))
            if known is None:
                return self._recorded_while(condition, body, state)
            if not known:
                return packed(state)
            result = body(*state)
            state = ((result or ()) if many else (result,))

    def _recorded_while(self, condition: Python, body: Any, state: tuple[Any, ...]) -> Any:
        carry = Carry(self._block(body), (condition, body), state)
        return carry.loop(lambda start: while_loop(
            lambda tensors: truth(condition(*carry.values(tensors))),
            lambda tensors: carry.turn(body, tensors),
            start,
        ))

    def for_loop(self, iterated: Any, body: Any, *state: Any, as_long_as: str | None = None) -> Any:
        """The variables of a loop after its end; the loop runs while the variable `as_long_as` is true."""
        block = self._block(body)
        flag = None if as_long_as is None else block.outputs.index(as_long_as)
        if isinstance(iterated, TensorRange):
            return self._recorded_range(iterated, body, state, flag)
        if iterated.__class__ is Tensor and only_recorded(iterated) and iterated.shape and iterated.shape[0]:
            return self._recorded_rows(iterated, body, state, flag)
        many = len(state) != 1
        for item in iterated:
            going = True if flag is None else decided(state[flag])
            if going is False:
                break
            result = body(item, *state) if going else self._unless_over(block, body, state, flag)(item, *state)
            state = (result or ()) if many else (result,)
        return packed(state)

    def _recorded_rows(self, rows: Tensor, body: Any, state: tuple[Any, ...], flag: int | None) -> Any:
        carry = Carry(self._block(body), (body,), state)

        def turn(tensors: Any, row: Tensor) -> Any:
            guarded = self._unless_over(carry.block, body, carry.values(tensors), flag)
            return carry.turn(lambda *values: guarded(row, *values), tensors), None

        return carry.loop(lambda start: scan(turn, start, rows)[0], 1 if flag is None else 0)

    def _recorded_range(self, numbers: TensorRange, body: Any, state: tuple[Any, ...], flag: int | None) -> Any:
        carry = Carry(self._block(body), (body,), state)

        def going(carried: Any) -> Any:
            done, tensors = carried
            more = done < numbers.count
            return more if flag is None else logical_and(more, truth(carry.values(tensors)[flag]))

        def turn(carried: Any) -> Any:
            done, tensors = carried
            number = as_number(numbers.start + done * numbers.step)
            return done + 1, carry.turn(lambda *values: body(number, *values), tensors)

        return carry.loop(lambda start: while_loop(going, turn, (numbers.count * 0, start))[1])

    def _unless_over(self, block: Block, body: Any, state: Any, flag: int | None) -> Python:
        """A body of a loop that does nothing once the flag is off."""
        if flag is None or decided(state[flag]) is not None:
            return body  # type: ignore[no-any-return]

        def guarded(item: Any, *values: Any) -> Any:
            def turn(*inner: Any) -> Any:
                return body(item, *inner)

            chosen = Choice(block, (body,), values)
            return chosen.decided(truth(values[flag]), (turn, lambda *inner: packed(inner)))

        return guarded

    # expressions ------------------------------------------------------------------------------------------------------

    def range(self, *bounds: Any) -> Any:
        """`range`, also of tensors."""
        if current_mode().interpreter is None or not any(b.__class__ is Tensor and not _computed(b) for b in bounds):
            return range(*bounds)
        for bound in bounds:
            if bound.__class__ is Tensor and (bound.shape or bound.dtype.kind not in "iu"):
                raise ConversionError(f"range() needs integers, not a tensor {bound.dtype} {bound.shape}")
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        return TensorRange(start, stop, step)

    def logical_not(self, value: Any) -> Any:
        """`not value`."""
        known = decided(value)
        return logical_not(truth(value)) if known is None else not known

    def logical_and(self, value: Any, other: Python) -> Any:
        """`value and other()`, where the other side cannot fail."""
        known = decided(value)
        if known is not None:
            return other() if known else value
        return self._both(logical_and, value, other())

    def logical_or(self, value: Any, other: Python) -> Any:
        """`value or other()`, where the other side cannot fail."""
        known = decided(value)
        if known is not None:
            return value if known else other()
        return self._both(logical_or, value, other())

    def _both(self, operation: Python, value: Tensor, other: Any) -> Any:
        is_bool = other.__class__ is bool or (other.__class__ is Tensor and other.dtype.kind == "b")
        if value.dtype.kind == "b" and is_bool:
            return operation(truth(value), truth(other) if other.__class__ is Tensor else other)
        if operation is logical_and:
            return self.and_then(value, lambda: other)
        return self.or_else(value, lambda: other)

    def and_then(self, value: Any, other: Python) -> Any:
        """`value and other()`, where the other side may only be computed if the value is true."""
        known = decided(value)
        if known is not None:
            return other() if known else value
        return self.cond(value, other, lambda: value)

    def or_else(self, value: Any, other: Python) -> Any:
        """`value or other()`, where the other side may only be computed if the value is false."""
        known = decided(value)
        if known is not None:
            return value if known else other()
        return self.cond(value, lambda: value, other)

    # plain statements and variables -----------------------------------------------------------------------------------

    def plain(self, test: Any, reason: str) -> bool:
        """The truth of a condition that only Python can decide."""
        known = decided(test)
        if known is None:
            raise TraceError(
                f"a tensor without a value decides here, but this must stay plain Python: {reason}",
                hint="mg.where, mg.cond or mg.while_loop; or compute the value outside the recorded code",
            )
        return known

    def undefined(self, name: str) -> Undefined:
        """The value of a variable before its first assignment."""
        return Undefined(name)

    def defined(self, value: Any) -> Any:
        """The value of a variable, or the error that it has none."""
        if value.__class__ is Undefined:
            raise value.error()
        return value


def _augmented(name: str) -> Python:
    """`x = script.iadd(x, y)` is `x += y`; a tensor that represents a number is replaced, not changed in place."""
    in_place, fresh = getattr(operator, name), getattr(operator, f"__{name[1:]}__")

    def apply(self: Script, value: Any, operand: Any) -> Any:
        if not is_number(value):
            return in_place(value, operand)
        result = fresh(value, operand)
        return as_number(result) if is_number(operand) else result

    return apply


for _name in AUGMENTED.values():
    setattr(Script, _name, _augmented(_name))


def only_recorded(tensor: Tensor) -> bool:
    """Whether the value of a tensor is not known yet."""
    return current_mode().control.flow is not None and not _computed(tensor)


def _computed(tensor: Tensor) -> bool:
    """Whether graph mode has already computed a recorded tensor."""
    return isinstance(getattr(current_mode().state.stand_in(tensor)._data, "value", None), tensor.device.ndarray)


def decided(test: Any) -> bool | None:
    """The truth of a value; None if it is not known while the code is recorded."""
    if test.__class__ is not Tensor:
        if test.__class__ is Undefined:
            raise test.error()
        return bool(test)
    mode = current_mode()
    if test.size != 1 or mode.interpreter is None:
        return bool(test)  # or the error for a tensor with several elements
    if mode.control.flow is not None:
        return None if only_recorded(test) else bool(test)
    some, every = mode.control.outcomes(truth(test))
    return some if some == every else None


def truth(value: Any) -> Any:
    """A condition as a bool tensor without dimensions, or as a Python bool."""
    if value.__class__ is not Tensor:
        return bool(value)
    test = value if value.dtype.kind == "b" else value != 0
    if test.size != 1:
        return bool(test)
    return test.reshape(()) if test.shape else test
