"""Calls of every public function with odd inputs: `python -m tests.odd_inputs` prints the outcomes.

Valid calls come from the docstrings: a recorder replaces each public function while its example runs.  Then each
argument of a recorded call in turn is replaced by each of the odd inputs.
"""

from __future__ import annotations

import contextlib
import copy
import decimal
import doctest
import functools
import inspect
import io
import os
import pathlib
import re
import resource
import signal
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import numpy as np

import minigrad as mg
import minigrad.compile
import minigrad.data
import minigrad.io
import minigrad.viz
from minigrad.arguments import public as arguments
from minigrad.support.errors import MinigradError
from tests.counterparts import called, counterpart, difference

SECONDS = 2.0  # seconds of work, after which a call counts as one that hangs
ROOM = 6 << 30  # bytes of memory beyond which a call fails

ROOMS: tuple[tuple[str, Any], ...] = (
    ("mg", mg),
    ("Tensor", mg.Tensor),
    ("mg.linalg", mg.linalg),
    ("mg.random", mg.random),
    ("mg.nn", mg.nn),
    ("mg.nn.init", mg.nn.init),
    ("Module", mg.nn.Module),
    ("mg.optim", mg.optim),
    ("mg.optim.lr_scheduler", mg.optim.lr_scheduler),
    ("mg.train", mg.train),
    ("mg.data", minigrad.data),
    ("mg.io", minigrad.io),
    ("mg.devices", mg.devices),
    ("mg.viz", minigrad.viz),
    ("mg.compile", minigrad.compile),
    ("mg.examples", mg.examples),
)
OPERATORS = {f"Tensor.__{name}__" for name in "getitem setitem add radd matmul iadd eq lt pow".split()}
LAZY = ("graph", "jit", "kernel", "load_program", "profile", "script", "trace")


def _deep() -> Any:
    found: Any = []
    for _ in range(10_000):
        found = [found]
    return found


def _cyclic() -> Any:
    found: list[Any] = [1.0]
    found.append(found)
    return found


def _on_another_device() -> Any:
    return mg.ones(2, device="cpu:1")


# Each is made again for each call, so that one call cannot change the input of another.
ODD: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "-1": lambda: -1,
    "0": lambda: 0,
    "2**40": lambda: 2**40,
    "2**70": lambda: 2**70,
    "1.5": lambda: 1.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "1j": lambda: 1j,
    "text": lambda: "abc",
    "no text": lambda: "",
    "bytes": lambda: b"ab",
    "empty list": list,
    "integers": lambda: [1, 2],
    "ragged list": lambda: [[1], [2, 3]],
    "deep list": _deep,
    "cyclic list": _cyclic,
    "empty tuple": tuple,
    "dictionary": lambda: {"a": 1},
    "set": lambda: {1, 2},
    "object": object,
    "class": lambda: int,
    "function": lambda: lambda *given: None,
    "module": lambda: types,
    "generator": lambda: (i for i in (1, 2)),
    "NumPy nan": lambda: np.float32("nan"),
    "array of text": lambda: np.array(["a", "b"]),
    "array of objects": lambda: np.array([None, {}], dtype=object),
    "array of records": lambda: np.zeros(2, dtype=[("a", "f4")]),
    "array of dates": lambda: np.zeros(2, dtype="datetime64[D]"),
    "empty array": lambda: np.zeros((0, 3), dtype="float32"),
    "array of bools": lambda: np.array([True, False]),
    "largest uint64": lambda: np.array([2**64 - 1], dtype="uint64"),
    "complex array": lambda: np.array([1j, 2.0]),
    "other device": _on_another_device,
    "64 dimensions": lambda: np.zeros((1,) * 64, dtype="float32"),
    "integer tensor": lambda: mg.asarray([1, 2]),
    "Ellipsis": lambda: ...,
    "slice": lambda: slice(1, None, 0),
    "decimal": lambda: decimal.Decimal("0.1"),
}


class Target(NamedTuple):
    """A public function, class or method, and a valid call of it."""

    name: str
    place: Any
    attribute: str
    parameters: tuple[str, ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def public() -> Iterator[tuple[str, Any, str, Any]]:
    """Every public function, class and method: its name, its owner, its attribute name there, and the object."""
    for prefix, place in ROOMS:
        names = set(vars(place)) | (set(LAZY) if place is mg else set())
        for name in sorted(getattr(place, "__all__", names)):
            if name.startswith("_") and f"{prefix}.{name}" not in OPERATORS:
                continue
            found = getattr(place, name)
            if inspect.isclass(found) and issubclass(found, BaseException):
                continue
            if callable(found) and (getattr(found, "__module__", "") or "").startswith("minigrad"):
                yield f"{prefix}.{name}", place, name, found


# A valid call of each function ---------------------------------------------------------------------------------------

MORE = {  # for functions whose docstring has no example
    "Tensor.__eq__": "mg.ones(2) == mg.ones(2)",
    "Tensor.__getitem__": "mg.ones(2)[0]",
    "Tensor.__iadd__": "x = mg.ones(2)\nx += 1",
    "Tensor.__radd__": "1 + mg.ones(2)",
    "Tensor.__setitem__": "mg.ones(2)[0] = 2.0",
    "mg.optim.lr_scheduler.ExponentialLR": "mg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)",
    "mg.optim.lr_scheduler.MultiStepLR": "mg.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4], 0.5)",
    "mg.train.Progress": "mg.train.Progress(3, 'epoch')",
    "mg.data.Flip": "mg.data.Flip(0.5)",
    "mg.data.Noise": "mg.data.Noise(0.5)",
    "mg.data.TextLines": "mg.data.TextLines(path)",
    "mg.data.ImageFolder": "mg.data.ImageFolder(folder)",
    "mg.data.read_table": "mg.data.read_table(path)",
    "mg.io.open_file": "mg.io.open_file(weights)",
    "mg.io.load_checkpoint": "mg.io.load_checkpoint(weights)",
}


class Recorder:
    """Replaces a public function while an example runs, and records the calls."""

    def __init__(self, found: Any) -> None:
        self.found, self.calls = found, []
        functools.update_wrapper(self, found)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.append((args, kwargs))
        return self.found(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def example_of(name: str, found: Any) -> str:
    """The code of a docstring's example."""
    if name in MORE:
        return MORE[name]
    text = inspect.getdoc(found) or ""
    return "".join(e.source for e in doctest.DocTestParser().get_examples(text))


def names_for_examples() -> dict[str, Any]:
    """The names that examples may use."""
    pathlib.Path("lines.txt").write_text("a,b\n1,2\n", encoding="utf-8")
    pathlib.Path("folder").mkdir(exist_ok=True)
    mg.io.save_file({"weight": mg.ones(2)}, "weights.safetensors")
    w = mg.ones(2, requires_grad=True)
    return {"mg": mg, "np": np, "optimizer": mg.optim.SGD([w], lr=0.1), "path": "lines.txt", "folder": "folder",
            "weights": "weights.safetensors"}


def recorded(name: str, place: Any, attribute: str, found: Any) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The calls of a public function in its example."""
    code = example_of(name, found)
    names = names_for_examples()
    module = sys.modules.get(getattr(found, "__module__", "")) or mg
    names = {**vars(module), **names}
    owner = inspect.getattr_static(place, attribute) if attribute in vars(place) else found
    if isinstance(owner, (staticmethod, classmethod, property)):
        return []
    recorder = Recorder(found)
    setattr(place, attribute, recorder)
    shadowed = names.get(attribute) is found
    if shadowed:
        names[attribute] = recorder
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for example in [code] if name in MORE else [
                e.source for e in doctest.DocTestParser().get_examples(inspect.getdoc(found) or "")
            ]:
                with contextlib.suppress(Exception):
                    exec(compile(example, "<example>", "exec"), names)
    finally:
        setattr(place, attribute, owner)
    return recorder.calls


def targets() -> Iterator[Target]:
    """Each public function with the longest call in its example."""
    done: set[int] = set()
    everything = list(public())
    for name, place, attribute, found in public():
        if id(found) in done:
            continue
        try:
            signature = inspect.signature(found)
        except (TypeError, ValueError):
            continue
        calls = recorded(name, place, attribute, found)
        fitting = []
        for args, kwargs in calls:
            with contextlib.suppress(TypeError):
                signature.bind(*args, **kwargs)
                fitting.append((args, kwargs))
        if not fitting and any(other is found for n, _, _, other in everything if n != name):
            continue  # the function has its example under another name
        if not fitting:
            yield Target(name, place, attribute, (), (), {})
            continue
        done.add(id(found))
        args, kwargs = max(fitting, key=lambda call: len(call[0]) + len(call[1]))
        yield Target(name, place, attribute, tuple(signature.parameters), args, kwargs)


def variants(target: Target) -> Iterator[tuple[str, Callable[[Any], tuple[tuple[Any, ...], dict[str, Any]]]]]:
    """For each argument: its name, and a function that makes the call with another value for it."""
    found = getattr(target.place, target.attribute)
    signature = inspect.signature(found)
    bound = signature.bind(*target.args, **target.kwargs)
    method = inspect.isclass(target.place)
    for index, parameter in enumerate(signature.parameters.values()):
        if (method and index == 0) or parameter.kind is parameter.VAR_KEYWORD:
            continue  # the other arguments belong to a user's function

        def put(odd: Any, parameter: Any = parameter) -> tuple[tuple[Any, ...], dict[str, Any]]:
            again = signature.bind(*copied(bound.args), **copied(bound.kwargs))
            if parameter.kind is parameter.VAR_POSITIONAL:
                given = (*again.arguments.get(parameter.name, ())[:-1], odd)
                args = []
                for p in signature.parameters.values():
                    if p.kind is p.VAR_POSITIONAL:
                        args += given
                    elif p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD:
                        args.append(again.arguments.get(p.name, p.default))
                return tuple(args), dict(again.kwargs)
            if parameter.kind is parameter.VAR_KEYWORD:
                return again.args, {**again.kwargs, "unheard_of": odd}
            again.arguments[parameter.name] = odd
            again.apply_defaults()
            return again.args, again.kwargs

        yield parameter.name, put


def copied(given: Any) -> Any:
    """A copy if the value can be copied, otherwise the value."""
    try:
        return copy.deepcopy(given)
    except Exception:
        return given


# The outcome of a call -----------------------------------------------------------------------------------------------


class Slow(BaseException):
    """A call took too long."""


def _late(*_: Any) -> None:
    raise Slow


# Python's message if a function of the user is called with wrong arguments.
_WRONG_CALL = re.compile(
    r"[\w.<>]*\(\) (takes|missing|got an unexpected|got multiple values)|int\(\) can't|int expected"
    r"|.* keyword argument for int"
)


def _fit(function: Any, args: Any, kwargs: Any) -> str:
    """Whether the arguments have the declared types."""
    made = function.__init__ if inspect.isclass(function) else function
    made = inspect.unwrap(made)
    owner = object() if inspect.isclass(function) else getattr(function, "__self__", None)
    given = args if owner is None else (owner, *args)
    try:
        return "not declared" if arguments.misfit(made, given, kwargs) is not None else "declared"
    except Exception:
        return "anything"


def outcome(
    function: Callable[..., Any], args: Any, kwargs: Any, compared: Callable[[Any], str] = lambda result: ""
) -> tuple[str, str, str]:
    """The outcome of a call (ours, refused, internal, hangs or accepted), details, and the result of the comparison."""
    quiet = io.StringIO()
    signal.setitimer(signal.ITIMER_PROF, SECONDS, SECONDS)  # repeatedly: a callback may catch the first
    try:
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = function(*args, **kwargs)
        return "accepted", _fit(function, args, kwargs), compared(args[0] if result is None else result)
    except Slow:
        return "hangs", "", ""
    except MinigradError as error:
        return "ours", type(error).__name__, ""
    except BaseException as error:
        trace = error.__traceback__.tb_next if error.__traceback__ is not None else None
        if isinstance(error, TypeError) and trace is None:
            return "refused", str(error), ""
        frames = traceback.extract_tb(error.__traceback__)
        if frames[-1].filename == "<example>" or _WRONG_CALL.match(str(error)):
            return "theirs", f"{type(error).__name__}", ""
        last = [f for f in frames if f"{os.sep}minigrad{os.sep}" in f.filename][-1:] or frames[-1:]
        where = f"{last[0].filename.rpartition('/minigrad/')[2]}:{last[0].lineno} {last[0].line}"
        return "internal", f"{type(error).__name__}: {str(error)[:80]!r} at {where}", ""
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def compared_with_numpy(name: str, function: Any, args: Any, kwargs: Any) -> Callable[[Any], str]:
    """A function that compares a result with NumPy's for the same call, or returns "no counterpart"."""

    def compare(result: Any) -> str:
        found = counterpart(name, function)
        if found is None:
            return "no counterpart"
        try:
            signal.setitimer(signal.ITIMER_PROF, SECONDS, SECONDS)
            theirs = called(found, function, args, kwargs)
        except (Exception, Slow) as error:
            return f"NumPy raises {type(error).__name__}: {error}"[:100]
        different = difference(result, theirs)
        return f"differs: {different}" if different else "same"

    return compare


def attempts(only: str = "", part: int = 0, parts: int = 1) -> Iterator[tuple[str, ...]]:
    """Name, parameter, odd input and outcome, for all calls or for one in `parts` of them."""
    signal.signal(signal.SIGPROF, _late)
    number = 0
    for target in list(targets()):
        if only not in target.name or not target.parameters:
            continue
        function = getattr(target.place, target.attribute)
        for parameter, put in variants(target):
            for odd, make in ODD.items():
                number += 1
                if number % parts != part:
                    continue
                args, kwargs = put(make())
                again = compared_with_numpy(target.name, function, *put(make()))
                yield target.name, parameter, odd, *outcome(function, args, kwargs, again)


def pairs(seed: int) -> Iterator[tuple[str, ...]]:
    """Name, parameters, odd inputs and outcome, for two calls of each function.

    One has one or two random odd inputs in place of valid ones, the other has nine arguments too many.
    """
    signal.signal(signal.SIGPROF, _late)
    random = Random(seed)
    for target in list(targets()):
        changes: list[tuple[str, str]] = []
        now = target
        for _ in range(2):
            possible = [each for each in variants(now) if each[0] not in dict(changes)] if target.parameters else []
            if possible:
                (parameter, put), odd = random.choice(possible), random.choice([*ODD])
                args, kwargs = put(ODD[odd]())
                now = now._replace(args=args, kwargs=kwargs)
                changes.append((parameter, odd))
        function, odd = getattr(target.place, target.attribute), random.choice([*ODD])
        if changes:
            found = outcome(function, now.args, now.kwargs)
            yield target.name, *[", ".join(each) for each in zip(*changes)], *found
        yield target.name, "nine more", odd, *outcome(function, (*target.args, *[ODD[odd]()] * 9), target.kwargs)


def main(only: str = "", to: str = "-", part: str = "0", parts: str = "1") -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    out = sys.stdout if to == "-" else open(to, "w", encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), out:
        for attempt in pairs(int(parts)) if part == "pairs" else attempts(only, int(part), int(parts)):
            print(*[" ".join(word.split()) for word in attempt], sep="\t", file=out)


if __name__ == "__main__":
    main(*sys.argv[1:])
