"""`Module`: an object whose attributes hold tensors, other modules, and lists and dicts of them.

Nothing is registered: tensors and modules are found by walking the attributes.  A leaf that requires a gradient
is a parameter, any other tensor is a buffer.  An attribute that `forward` adds holds an activation, which is neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from weakref import ref

from ..arguments.public import refused
from ..core.absent import ModuleNames
from ..core.mode import CURRENT, Mode, ModuleName, current_mode
from ..core.tensor import Tensor
from ..core.tree import flatten, register_container
from ..support.errors import ConversionError, MinigradError
from ..support.table import counted, printable
from ..support.words import a_type, shown, too_deep
from .hooks import AFTER, BEFORE, Handle, Hooks
from .state import Loaded, load_tensors, move_tensor

Path = tuple[Any, ...]
Entry = tuple[ref[Mode] | None, ref[Mode] | None]
PARAMETER, BUFFER, UNSAVED = "parameter", "buffer", "unsaved"  # what a tensor of a module is

if TYPE_CHECKING:
    from typing import ParamSpec, Protocol, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R", covariant=True)

    class HasForward(Protocol[P, R]):
        """A module for type checkers: a call takes what `forward` takes, and returns what it returns."""

        def forward(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


class Module(ModuleNames):
    """A function with parameters.  Set attributes in `__init__`, and compute the result in `forward`.

    >>> class Scale(mg.nn.Module):
    ...     def __init__(self):
    ...         self.factor = mg.asarray([2.0], requires_grad=True)
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> scale = Scale()
    >>> scale(mg.asarray([1.0, 2.0])).tolist(), len(scale.parameters())
    ([2.0, 4.0], 1)

    A tensor that `forward` stores where no tensor was is an activation: it is not part of the state.  A new leaf with
    `requires_grad=True` is a parameter wherever it is set, because that is how a parameter is declared.

    >>> class Watched(mg.nn.Module):
    ...     def forward(self, x):
    ...         self.last = x
    ...         return x
    >>> watched = Watched()
    >>> y = watched(mg.ones(2))
    >>> watched.last is y, watched.buffers(), list(watched.state_dict())
    (True, [], [])

    The attribute `unsaved` names tables that `__init__` makes again: they move with the module, but they are not saved.
    `register_buffer("mask", mask, persistent=False)` adds a name.

    The class attribute `caches` names further attributes that are not part of the state.  They are not submodules
    either, they are not saved or copied, and `mg.jit` does not read them.  A class adds its own names:
    `caches = (*mg.nn.Module.caches, "last")`.
    """

    caches: tuple[str, ...] = ("_entry", "_name", "_hooks", "_activations", "_rebuilt")  # not part of the state
    unsaved: tuple[str, ...] = ()  # attributes whose tensors `state_dict()` leaves out
    training = True  # train() and eval() set it on the object
    # First reader: skip to `forward`.  These serve calls, hooks and activations.
    _entry: Entry = (None, None)  # weak references to the modes outside and inside the last call
    _name = ""  # its name in the module that holds it
    _hooks: Hooks | None = None
    _activations: frozenset[str] | None = None  # attributes that `forward` added; None before the first call
    _nested = True  # whether tensors and modules in lists and dicts among the attributes belong to it
    _rebuilt = 0  # of a copy with other tensors, whose parameters may be results of operations: the id of the original

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's result: subclasses override this."""
        raise NotImplementedError(f"{type(self).__name__} has no forward method")

    if TYPE_CHECKING:
        def __call__(self: HasForward[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...
    else:
        def __call__(self, *args, **kwargs):
            """Run `forward` and the hooks before and after it; the nodes carry the name of this module."""
            mode = current_mode()
            outside, inside = self._entry
            inside = inside() if outside is not None and outside() is mode else self._enter(mode)
            try:
                CURRENT.set(inside)
                if self._hooks is None:
                    result = self.forward(*args, **kwargs)
                else:
                    args = self._hooks.before(self, args)
                    result = self._hooks.after(self, args, self.forward(*args, **kwargs))
                CURRENT.set(mode)
                return result
            except BaseException as error:
                CURRENT.set(mode)
                if isinstance(error, MinigradError):
                    _say_where(error, inside)
                elif isinstance(error, Exception):
                    return refused(self.forward, args, kwargs, error)
                raise

    def _enter(self, mode: Mode) -> Mode:
        """The mode inside this module, which the mode outside keeps for the next call."""
        _name_children(self)
        if self._activations is None:  # the attributes are the same in all modes, for the quick check of `jit`
            self._activations = frozenset()
        kind, original, number, known = type(self).__name__, self._rebuilt or id(self), 1, mode.state.models
        name = self._name or kind
        while not self._name and known is not None and known.setdefault(name, original) != original:
            number += 1  # in a trace, the second model of a class is `Linear 2`
            name = f"{kind} {number}"
        name = ModuleName(name)
        name.kind = kind
        inside = mode.once("scope", (*mode.scope, name), f"{kind} {original}")
        self._entry = ref(mode), ref(inside)  # the module keeps no graph alive
        return inside

    def __setattr__(self, name: str, value: Any) -> None:
        if self._activations is not None and isinstance(value, (Tensor, list, tuple, dict)):
            self._note(name, value)
        object.__setattr__(self, name, value)

    def _note(self, name: str, value: Any) -> None:
        """Note whether an attribute is about to become, or to be no longer, an activation."""
        known = self._activations or frozenset()
        replaced = any(_walk((name,), vars(self).get(name))) and name not in known
        held = [each for _, each in _walk((name,), value)]
        declared = not current_mode().scope or replaced or any(
            not isinstance(each, Tensor) or (each.requires_grad and each.is_leaf) for each in held
        )
        self._activations = known - {name} if declared else known | {name}

    def register_forward_pre_hook(self, hook: Any) -> Handle:
        """Call `hook(module, args)` before each `forward`; a result that is not None replaces the arguments.

        >>> double = mg.nn.Tanh()
        >>> handle = double.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
        >>> double(mg.ones(2)).tolist()
        [0.0, 0.0]
        """
        return self._hook(BEFORE, hook)

    def register_forward_hook(self, hook: Any) -> Handle:
        """Call `hook(module, args, output)` after each `forward`; a result that is not None replaces the output.

        >>> layer = mg.nn.Linear(2, 3)
        >>> with layer.register_forward_hook(lambda module, args, output: print(output.shape)):
        ...     _ = layer(mg.ones((5, 2)))
        (5, 3)
        """
        return self._hook(AFTER, hook)

    def _hook(self, when: str, hook: Any) -> Handle:
        if not callable(hook):
            raise ConversionError(f"a hook is a function, not {a_type(hook)}")
        self._hooks = self._hooks or Hooks()
        return self._hooks.add(when, hook)

    # what hangs on it -----------------------------------------------------------------------------------------------

    def named_modules(self) -> list[tuple[str, Module]]:
        """This module, as "", and all those in it, each once.

        >>> [name for name, _ in mg.nn.Sequential(mg.nn.ReLU(), mg.nn.Sequential(mg.nn.Tanh())).named_modules()]
        ['', '0', '1', '1.0']
        """
        found: dict[int, tuple[str, Module]] = {}
        _collect_modules(self, "", found)
        return list(found.values())

    def modules(self) -> list[Module]:
        """This module and all those in it, each once."""
        return [module for _, module in self.named_modules()]

    def named_children(self) -> list[tuple[str, Module]]:
        """The modules directly in this one, with their names.

        >>> mg.nn.Sequential(mg.nn.ReLU(), mg.nn.Sequential(mg.nn.Tanh())).named_children()[0]
        ('0', ReLU())
        """
        return [(_dotted(path), child) for path, child in children(self)]

    def children(self) -> list[Module]:
        """The modules directly in this one."""
        return [child for _, child in children(self)]

    def named_tensors(self) -> list[tuple[str, Tensor]]:
        """Every tensor by its name, without activations.  A tensor in two attributes has two names."""
        return [(name, tensor) for name, tensor, _ in self._named()]

    def _named(self) -> Iterator[tuple[str, Tensor, str]]:
        """The tensors by name, and what each is: `PARAMETER`, `BUFFER` or `UNSAVED`."""
        for name, module in self.named_modules():
            for path, tensor in _held(module):
                kind = module._kind(path[0], tensor) if isinstance(tensor, Tensor) else ""
                if kind:
                    yield f"{name}.{_dotted(path)}".removeprefix("."), tensor, kind

    def _kind(self, name: str, tensor: Tensor) -> str:
        """What a tensor in this attribute is: `PARAMETER`, `BUFFER`, `UNSAVED`, or "" for an activation."""
        if name in (self._activations or ()):
            return ""
        if tensor.requires_grad and (tensor.is_leaf or self._rebuilt):
            return PARAMETER
        return UNSAVED if name in self.unsaved else BUFFER

    def named_parameters(self) -> list[tuple[str, Tensor]]:
        """The leaves that require a gradient by name, each once.

        >>> [(name, p.shape) for name, p in mg.nn.Linear(2, 3).named_parameters()]
        [('weight', (3, 2)), ('bias', (3,))]
        """
        return _once((name, t) for name, t, kind in self._named() if kind == PARAMETER)

    def parameters(self) -> list[Tensor]:
        """The leaves that require a gradient, each once.

        >>> len(mg.nn.Linear(2, 3).parameters())
        2
        """
        return [t for _, t in self.named_parameters()]

    def named_buffers(self) -> list[tuple[str, Tensor]]:
        """The tensors that are not parameters by name, each once."""
        return _once((name, t) for name, t, kind in self._named() if kind != PARAMETER)

    def buffers(self) -> list[Tensor]:
        """The tensors that are not parameters, each once."""
        return [t for _, t in self.named_buffers()]

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Set an attribute to a tensor without a gradient.  If not `persistent`, `state_dict()` leaves it out.

        >>> layer = mg.nn.Linear(2, 3)
        >>> layer.register_buffer("mask", mg.ones(3), persistent=False)
        >>> layer.mask.shape, list(layer.state_dict()), len(layer.buffers())
        ((3,), ['weight', 'bias'], 1)
        """
        if not (tensor is None or isinstance(tensor, Tensor)):
            raise ConversionError(f"register_buffer: tensor is a tensor or None, not {shown(tensor)}")
        if not isinstance(persistent, bool):
            raise ConversionError(f"register_buffer: persistent is True or False, not {shown(persistent)}")
        setattr(self, name, tensor)
        others = tuple([each for each in self.unsaved if each != name])
        self.unsaved = others if persistent else (*others, name)

    # what is done to all of it --------------------------------------------------------------------------------------

    def apply(self, function: Callable[[Module], Any]) -> Any:
        """Call `function` with every module in this one, inner ones first, and with itself.  Returns the module.

        >>> def ones(module):
        ...     if isinstance(module, mg.nn.Linear):
        ...         mg.nn.init.ones_(module.weight)
        >>> mg.nn.Sequential(mg.nn.Linear(1, 2), mg.nn.ReLU()).apply(ones)[0].weight.tolist()
        [[1.0], [1.0]]
        """
        if isinstance(function, type) or not callable(function):
            raise ConversionError(f"apply: function is called with each module, not {a_type(function)}")
        for module in list(_inner_first(self, set())):
            function(module)
        return self

    def train(self, mode: bool = True) -> Any:
        """Switch to training: dropout drops.  Returns the module.

        >>> mg.nn.Dropout(0.5).eval()(mg.ones(3)).tolist()
        [1.0, 1.0, 1.0]
        """
        for module in self.modules():
            vars(module).pop("training", None)  # as before eval() was called: a jitted step finds no change
            if not mode:
                module.training = False
        return self

    def eval(self) -> Any:
        """Switch to evaluation: dropout does nothing.  Returns the module."""
        return self.train(False)

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to None."""
        for parameter in self.parameters():
            parameter.grad = None

    def to(self, target: Any) -> Any:
        """Move the tensors to a device, or cast the floats among them to a dtype.  Returns the module.

        The tensors stay the same objects, so an optimizer that holds them keeps working.

        >>> mg.nn.Linear(2, 3).to(mg.float64).weight.dtype
        dtype('float64')
        """
        for _, tensor in _once(self.named_tensors()):
            move_tensor(tensor, target)
        return self

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of all tensors by name, which later training does not change.

        >>> list(mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.Tanh()).state_dict())
        ['0.weight', '0.bias']
        """
        return {name: tensor.detach().copy() for name, tensor in self._saved().items()}  # type: ignore[attr-defined]

    def _saved(self) -> dict[str, Tensor]:
        return {name: tensor for name, tensor, kind in self._named() if kind != UNSAVED}

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> Loaded:
        """Copy values into the tensors with the same names: all of them, or none if they do not fit.

        If not `strict`, names missing on either side are skipped and reported; shapes must still fit.

        >>> one, other = mg.nn.Linear(2, 3), mg.nn.Linear(2, 3)
        >>> other.load_state_dict(one.state_dict())
        Loaded(missing=[], unexpected=[])
        >>> bool((one.weight == other.weight).all())
        True
        """
        return load_tensors(self._saved(), state, type(self).__name__, strict)

    # text -----------------------------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """The text about this module in its repr, after its name."""
        return ""

    def summary(self, *inputs: Any) -> Any:
        """A table of the modules: for such inputs, the output, parameters and operations of each.

        >>> print(mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.ReLU()).summary(mg.ones((5, 2))))
        module   type         output   parameters   bytes   flops
                 Sequential   (5, 3)   9            36      105
          0      Linear       (5, 3)   9            36      75
          1      ReLU         (5, 3)                        30
        """
        from .summary import summary

        return summary(self, *inputs)

    def __repr__(self) -> str:
        parts = [f"{name}: {child!r}" for name, child in self.named_children()]
        if type(self).extra_repr is Module.extra_repr:  # else its tensors need not be listed
            tensors = [(_dotted(path), t) for path, t in _held(self) if isinstance(t, Tensor)]
            said = [f"{name}: {t.dtype} {t.shape}{'' if t.requires_grad else ', buffer'}" for name, t in tensors]
            parts = said + parts
        words = [self.extra_repr()]
        if children(self):
            words += [counted(sum(p.size for p in self.parameters()), "parameter")]
        head = f"{type(self).__name__}({', '.join(filter(None, words))}"
        lines = "".join("\n  " + part.replace("\n", "\n  ") for part in parts)
        return printable(head + lines + ("\n)" if parts else ")"))

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name not in self.caches}
        return kept | ({"_activations": self._activations} if self._activations else {})


def children(module: Module) -> list[tuple[Path, Module]]:
    """The modules directly in a module, with their places: `("layers", 0)` is `module.layers[0]`."""
    return [(path, value) for path, value in _held(module) if isinstance(value, Module)]


def _name_children(module: Module, within: str = "") -> None:
    """Give the modules in a module their names: `layers[0]`, also if a ModuleList holds them."""
    for path, child in children(module):
        first, *rest = (within, *path) if within else path
        child._name = first + "".join(f"[{key}]" for key in rest)
        if type(child).forward is Module.forward:  # it only holds other modules, and is never called
            _name_children(child, child._name)


def _held(module: Module) -> Iterator[tuple[Path, Any]]:
    """The tensors and modules in the attributes of a module, and in lists and dicts among them."""
    for name, value in vars(module).items():
        if name not in module.caches and (module._nested or isinstance(value, (Tensor, Module))):
            yield from _walk((name,), value)


def _walk(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, (Tensor, Module)):
        yield path, value
    elif isinstance(value, (list, tuple, dict)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        try:
            for key, item in items:
                yield from _walk((*path, key), item)
        except RecursionError as error:
            where = f"the attribute {path[0]} of a module"
            raise too_deep(where, value, error) from None


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))


def _say_where(error: MinigradError, mode: Mode) -> None:
    """Put the path of the innermost module that raised an error in front of its message."""
    if not hasattr(error, "module"):
        error.module = path = ".".join(mode.scope).replace("[", ".").replace("]", "")  # type: ignore[attr-defined]
        error.args = (f"in {path}: {error.args[0]}", *error.args[1:])


def _collect_modules(module: Module, name: str, found: dict[int, tuple[str, Module]]) -> None:
    if id(module) not in found:
        found[id(module)] = name, module
        for more, child in module.named_children():
            _collect_modules(child, f"{name}.{more}".removeprefix("."), found)


def _inner_first(module: Module, visited: set[int]) -> Iterator[Module]:
    visited.add(id(module))
    for _, child in children(module):
        if id(child) not in visited:
            yield from _inner_first(child, visited)
    yield module


def _once(named: Any) -> list[tuple[str, Tensor]]:
    first: dict[int, tuple[str, Tensor]] = {}
    for each in named:
        first.setdefault(id(each[1]), each)
    return list(first.values())


# Modules as containers ----------------------------------------------------------------------------------------------


def _state_names(module: Module) -> list[str]:
    """The attributes whose tensors a copy may replace: all but caches and activations."""
    left_out = (*module.caches, *module._activations) if module._activations else module.caches
    return [name for name in vars(module) if name not in left_out]


def _parts(module: Module) -> list[Any]:
    return [vars(module)[name] for name in _state_names(module)]


def _rebuilt(module: Module, parts: list[Any]) -> Module:
    """A shallow copy of a module with other tensors in the same places, and with the same activations."""
    copy = object.__new__(type(module))
    vars(copy).update({name: vars(module)[name] for name in module._activations or () if name in vars(module)})
    vars(copy).update(
        zip(_state_names(module), parts), _name=module._name, _hooks=module._hooks, _activations=module._activations,
        _rebuilt=module._rebuilt or id(module),
    )
    return copy


register_container(Module, _parts, _rebuilt)


def functional_call(module: Module, tensors: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a module with other tensors instead of its own.  The module does not change.

    >>> layer = mg.nn.Linear(2, 1)
    >>> weights = {"weight": mg.asarray([[1.0, 2.0]]), "bias": mg.asarray([0.5])}
    >>> mg.nn.functional_call(layer, weights, mg.asarray([1.0, 1.0])).tolist()
    [3.5]
    """
    own = dict(module.named_tensors())
    unknown = [name for name in tensors if name not in own]
    if unknown:
        raise ConversionError(
            f"functional_call: {type(module).__name__} has no tensor named {', '.join(map(repr, unknown))}",
            expect=", ".join(own) or "a module with tensors",
        )
    instead = {id(own[name]): tensor for name, tensor in tensors.items()}
    places, rebuild = flatten(module)
    return rebuild([instead.get(id(t), t) for t in places])(*args, **kwargs)
