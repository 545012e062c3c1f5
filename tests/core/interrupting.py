"""Ctrl-C at every opcode: checks the state that an interrupted call leaves behind."""

import dis
import sys
from functools import cache
from pathlib import Path

import numpy as np

import minigrad as mg
from minigrad.core.mode import current_mode

LIBRARY = str(Path(mg.__file__).parent)


class Case:
    """A call to interrupt (`act`), and the values that must be the same afterwards.

    `after()` returns values that later calls compute.  They must equal those of a run without `act`, those of a run in
    which `act` completed, or one of `allowed`.
    """

    allowed = ()

    def act(self):
        raise NotImplementedError

    def after(self):
        raise NotImplementedError

    def stopped(self, error):
        """Called with the exception, to check it."""


@cache
def leaving(code):
    """The offsets where the end of a `with` block calls `__exit__`: Python interrupts only after calls and jumps."""
    found, instructions = set(), list(dis.get_instructions(code))
    for i in range(len(instructions)):
        three = instructions[i : i + 3]
        call = [each for each in instructions[i + 3 : i + 5] if each.opname in ("CALL", "PRECALL")]
        if call and len(three) == 3 and all(e.opname == "LOAD_CONST" and e.argval is None for e in three):
            swap = [each for each in instructions[max(0, i - 1) : i] if each.opname == "SWAP"]  # of `return` in it
            found |= {each.offset for each in (*swap, *three, *call)}
    return found


class Stop:
    """Raises KeyboardInterrupt before an opcode of minigrad's own code, by number; without one, counts them."""

    def __init__(self, number=None):
        self.number, self.count, self.where = number, 0, None

    def __call__(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(LIBRARY):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.opcode

    def opcode(self, frame, event, arg):
        if event == "opcode" and frame.f_lasti not in leaving(frame.f_code):
            self.count += 1
            if self.count == self.number:
                sys.settrace(None)
                self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}"
                raise KeyboardInterrupt
        return self.opcode

    def run(self, act):
        """The error that stopped the call, or None: callbacks of weak references swallow it."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            act()
        except KeyboardInterrupt as error:
            return error
        finally:
            sys.settrace(before)
        return None


def plain(value):
    """Tensors and arrays as lists, which can be compared."""
    if isinstance(value, mg.Tensor):
        return np.round(value.detach().numpy_copy().astype("float64"), 5).tolist()
    if isinstance(value, np.ndarray):
        return np.round(value, 5).tolist()
    if isinstance(value, dict):
        return {name: plain(v) for name, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def gradient_or_refusal(y, w):
    """The gradient of `y` by `w`, or "refused" where a value that it needs was overwritten."""
    try:
        y.backward()
        return w.grad
    except mg.MutationError:
        return "refused"


def outcome(make, act=False):
    case = make()
    if act:
        case.act()
    return plain(case.after())


def points(make):
    """How many opcodes there are to stop at."""
    for _ in range(2):  # Python 3.12 reports no opcodes in the first traced run
        case, stop = make(), Stop()
        stop.run(case.act)
    return stop.count


def probe():
    """One computation of each kind that depends on the mode or on shared state."""
    w, x = mg.asarray([1.0, 2.0], requires_grad=True), mg.asarray([3.0, 4.0])
    y = (w * x).sum()
    x += 1.0
    try:
        y.backward()
        stale = "not seen"
    except mg.MutationError:
        stale = "seen"
    (w * x).sum().backward()
    return plain([y.item(), stale, w.grad, x])


def faults(make, numbers):
    """The opcodes after which an interrupt left a wrong state: the place and the fault of each."""
    mode, fresh = current_mode(), probe()
    right = [outcome(make), outcome(make, act=True), *map(plain, make().allowed)]
    found = []
    for number in numbers:
        case, stop = make(), Stop(number)
        try:
            error = stop.run(case.act)
            case.stopped(error)
            error = None  # the traceback would keep objects that a `with` block has freed
            if current_mode() is not mode:
                found.append((number, stop.where, "the mode is another"))
            got = plain(case.after())
            if got not in right:
                found.append((number, stop.where, f"{got} is not one of {right}"))
            if probe() != fresh:
                found.append((number, stop.where, "other calls are wrong"))
        except Exception as broken:
            found.append((number, stop.where, f"{type(broken).__name__}: {broken}"))
        if current_mode() is not mode:  # for the cases after this one
            from minigrad.core.mode import CURRENT

            CURRENT.set(mode)
    return found
