"""A primitive: one operation, with its shape rule, gradient rules and formula in one record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ..support.context import setting
from ..support.errors import DeclarationError, DtypeError
from ..support.source import ON_BEHALF_OF, caller
from . import dtypes
from .expression import check_expression
from .override import override_of

if TYPE_CHECKING:
    from .dtypes import DType

Infer = Callable[..., tuple[tuple[int, ...], "DType"]]
Attrs = dict[str, Any]

# A slot says what a parameter of a gradient rule reads: input number 0, 1, ..., or one of these.  REST is the tuple of
# all inputs of a `*xs`; its parameter has the declared name, so it is not in SPECIAL.
OUT, NODE, REST, INDEX = -1, -2, -3, -4
SPECIAL = {"out": OUT, "node": NODE, "index": INDEX}
KINDS = (
    "elementwise", "reduce", "view", "index", "contract", "random", "creation", "structural",
    "own",  # a user's kernel, which replaces a pattern of operations
)


class Rule(NamedTuple):
    """The gradient rule of one input: `function(g, *reads)`.  `only` is the slot, if the rule reads a single value."""

    index: int  # type: ignore[assignment]  # of the input; a tuple has a method of that name
    function: Callable[..., Any]
    reads: tuple[int, ...]
    only: int | None


class Plan(NamedTuple):
    """For one set of tracked inputs: the rules to run, and which of (inputs..., out) they read.

    `whole(g, node)` returns the gradients of all inputs at once, by index.  Closed nodes have it in place of functions.
    """

    rules: tuple[Rule, ...]
    keep: tuple[bool, ...] | None
    whole: Callable[..., dict[int, Any]] | None = None


NO_RULES = Plan((), None)


class Casts(NamedTuple):
    """For one combination of input types: the dtype of the computation, and the inputs to cast to it."""

    dtype: DType | None
    indices: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Primitive:
    """One operation.  Its kernels are in the tables of the devices.

    The parameters of a gradient rule declare the values that it needs: `lambda g, y: g * y` saves `y`, and nothing
    else, until the backward pass.  The first parameter, `g`, is the gradient of the result.  The others are names of
    inputs, `out` (the result), `node` (for shapes, dtypes and attributes, which need no memory) or `index`.  Rules
    consist of public operations, so a gradient is a computation like any other and has gradients too.
    """

    name: str
    kind: str  # one of KINDS
    inputs: tuple[str, ...]  # "*xs" for any number
    infer: Infer  # (inputs, **attrs) -> (shape, dtype), or an error
    rules: dict[str, Callable[..., Any]] = field(default_factory=dict)  # input name -> gradient rule
    promotes: tuple[str, ...] | None = None  # inputs that are cast to a common dtype; None: all of them
    domain: str = "any"  # any, or float: promoted inputs are cast to a float
    accepts: str = "biuf"  # the kinds of dtype that it supports
    linear: tuple[str, ...] = ()  # inputs in which it is jointly linear: it is its own derivative
    expr: str | None = None  # elementwise: one element, in Python syntax, for generated kernels
    cost: float = 0.25  # elementwise: the cost of one element, in bytes of memory traffic
    formula: str = ""  # LaTeX of the result
    local: dict[str, str] = field(default_factory=dict)  # LaTeX of the derivative by each input
    batch: Callable[..., Any] | None = None  # the rule for vmap's batch dimension; None: that of its kind
    jvp: Callable[..., Any] | None = None  # a forward-mode rule, if a derived one would be slower
    effect: str | None = None  # an effect beyond its result: such a node is never dead code
    casting: bool = field(init=False, default=True)  # whether any input may have to be cast
    apply: Callable[..., Any] = field(init=False, repr=False)  # a quick `emit(op, ...)`, set by `ops.declare`
    plans: dict[int, Plan] = field(default_factory=dict, repr=False)
    known_casts: dict[tuple[Any, ...], Casts] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:  # First reader: skip to `plan`
        object.__setattr__(self, "casting", self.promotes != ())
        with setting(ON_BEHALF_OF, caller(3)):  # above the dataclass's __init__
            self._check()

    def _check(self) -> None:
        """Raise an error if the declaration contradicts itself."""
        names = [name.lstrip("*") for name in self.inputs]
        if self.kind not in KINDS:
            raise DeclarationError(f"{self.name}: there is no kind {self.kind!r}", expect=", ".join(KINDS))
        if self.kind == "view" and (len(names) != 1 or self.inputs != tuple(names)):
            raise DeclarationError(
                f"{self.name}: a view shares the memory of one tensor", expect="one input",
                actual=", ".join(self.inputs) or "none",
                hint="numbers and shapes are attributes: parameters of `infer` after the input",
            )
        for what in ("rules", "local", "linear", "promotes"):
            for unknown in [name for name in getattr(self, what) or () if name not in names]:
                raise DeclarationError(
                    f"{self.name}: {what} names {unknown}, which is not an input", expect=", ".join(names)
                )
        for name, rule in self.rules.items():
            self._check_rule(name, rule, names)
        if self.expr is not None:
            check_expression(self.name, self.expr, self.inputs)

    def _check_rule(self, name: str, rule: Any, names: list[str]) -> None:
        code = getattr(rule, "__code__", None)
        if code is None or not code.co_argcount:
            raise DeclarationError(
                f"{self.name}: the gradient rule of {name} is a function of g, the gradient of the result",
                actual=repr(rule), hint="a def or a lambda: its parameters declare the values that it needs",
            )
        for unknown in [p for p in code.co_varnames[1 : code.co_argcount] if p not in (*names, *SPECIAL)]:
            raise DeclarationError(
                f"{self.name}: the gradient rule of {name} names {unknown}, which is not an input",
                expect=f"after g, any of {', '.join([*names, *SPECIAL])}",
            )

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __reduce__(self) -> Any:
        return _find, (self.name,)

    def name_of(self, index: int) -> str:
        """The name of input `index`: `x`, or `xs[2]` for one of any number of inputs."""
        last = self.inputs[-1]
        if index < len(self.inputs) - 1 or not last.startswith("*"):
            return self.inputs[index]
        return f"{last[1:]}[{index - len(self.inputs) + 1}]"

    def plan(self, mask: int, count: int) -> Plan:
        """The plan for `count` inputs.  `mask` has a bit for each: bit i is 1 if input i is tracked."""
        key = mask | 1 << count  # the leading 1 encodes the number of inputs
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plans[key] = self._make_plan(mask, count)
        changed = override_of(self)
        return plan if changed is None else changed(plan)

    def _make_plan(self, mask: int, count: int) -> Plan:
        rules = []
        for index in range(count):
            function = self.rules.get(self._stem(index)) if mask >> index & 1 else None
            if function is not None:
                reads = self._reads(function)
                single = len(reads) == 1 and (reads[0] >= 0 or reads[0] == OUT)
                rules.append(Rule(index, function, reads, reads[0] if single else None))
        needed = {slot for rule in rules for slot in rule.reads}
        if REST in needed:
            needed |= set(range(len(self.inputs) - 1, count))
        keep = (*(i in needed for i in range(count)), OUT in needed)
        return Plan(tuple(rules), keep if any(keep) else None)

    def _reads(self, function: Callable[..., Any]) -> tuple[int, ...]:
        code = function.__code__
        slots = {name: i for i, name in enumerate(self.inputs)}
        slots |= SPECIAL | {name[1:]: REST for name in self.inputs if name.startswith("*")}
        return tuple(slots[name] for name in code.co_varnames[1 : code.co_argcount])

    def common_dtype(self, inputs: tuple[Any, ...]) -> DType | None:  # First reader: stop here
        """The common dtype of the promoted inputs; None if none are promoted."""
        return self.casts(inputs).dtype

    def casts(self, inputs: Sequence[Any]) -> Casts:
        """The inputs to cast, and their dtype; or an error if the operation does not support it."""
        key = tuple([getattr(x, "dtype", x.__class__) for x in inputs])
        found = self.known_casts.get(key)
        if found is None:
            found = self.known_casts[key] = self._find_casts(inputs)
        return found

    def _find_casts(self, inputs: Sequence[Any]) -> Casts:
        promoted = [i for i in range(len(inputs)) if self.promotes is None or self._stem(i) in self.promotes]
        if not promoted:
            return Casts(None, ())
        common = dtypes.result_type(*[inputs[i] for i in promoted])
        if common.kind not in self.accepts:
            raise DtypeError(
                f"{self.name} does not support {common}",
                expect=", ".join(dtypes.KIND_NAMES[kind] for kind in self.accepts),
                actual=", ".join(f"{self.name_of(i)} {getattr(x, 'dtype', x)}" for i, x in enumerate(inputs)),
            )
        if self.domain == "float" and common.kind != "f":
            common = dtypes.default_float
        tensors = [i for i in promoted if hasattr(inputs[i], "dtype")]
        wrong = tuple([i for i in tensors if inputs[i].dtype is not common])
        return Casts(common, wrong if tensors else tuple(promoted[:1]))  # of numbers only, cast the first

    def _stem(self, index: int) -> str:
        """The declared name of input `index`, without a star or a number."""
        return self.inputs[min(index, len(self.inputs) - 1)].lstrip("*")

    def is_linear(self, index: int) -> bool:
        """Whether it is linear in input `index`, jointly with the others in `linear`."""
        return self._stem(index) in self.linear


class Table:
    """The primitives by name: `P.add`.  `ops` adds them, because core cannot import `ops`."""

    def __init__(self) -> None:
        self._all: dict[str, Primitive] = {}

    def __getattr__(self, name: str) -> Primitive:
        raise AttributeError(f"there is no primitive named {name!r}")

    def declare(self, op: Primitive) -> Primitive:
        """Add a primitive to the table."""
        if op.name in self._all:
            raise DeclarationError(f"there is a primitive named {op.name!r} already", hint="another name")
        self._all[op.name] = op
        setattr(self, op.name, op)
        return op

    def forget(self, op: Primitive) -> None:
        """Remove a primitive from the table."""
        if self._all.get(op.name) is op:
            del self._all[op.name]
            delattr(self, op.name)

    def __iter__(self) -> Any:
        return iter(self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, name: str) -> Primitive:
        try:
            return self._all[name]
        except KeyError:
            raise DtypeError(f"there is no primitive named {name!r}", expect=", ".join(sorted(self._all))) from None


P = Table()


def _find(name: str) -> Primitive:
    return P[name]
