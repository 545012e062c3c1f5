"""The errors of minigrad: one class for each kind of fault.

The docstrings are the catalogue of errors: the meaning, an example that causes the error, and what to do.  The first
line of a message says what happened, `expect` what was expected, `actual` what was given, and `hint` what to do.  The
last line is the line of the user's program.
"""

from __future__ import annotations

import warnings
from typing import Any

from .source import ON_BEHALF_OF, caller, line_of, notebook_shell, outside, show
from .table import printable

__all__ = [
    "MinigradError", "ShapeError", "DtypeError", "DeviceError", "IndexingError", "AxisError", "GradError",
    "MutationError", "TraceError", "NanError", "ConversionError", "MatrixError", "CheckError", "CompileError",
    "ScriptError", "FileError", "MissingFileError", "StorageError", "PackageError", "MissingNameError",
    "MissingImportError", "DeclarationError", "DistributedError", "Gone", "GradientWarning", "ClassesWarning",
]


class MinigradError(Exception):
    """The base of all errors of minigrad: catch this class to catch any of them."""

    def __init__(self, message: str, *, expect: Any = None, actual: Any = None, hint: str | None = None) -> None:
        lines = [str(message)]
        line = show(ON_BEHALF_OF.get() or caller(2))
        for label, text in (("Expected", expect), ("Got", actual), ("Hint", hint), ("Line", line)):
            if text is not None:
                lines.append(f"  {label}: {text}")
        super().__init__(printable("\n".join(lines)))

    @property
    def first_line(self) -> str:
        """What happened."""
        return str(self).partition("\n")[0]

    def __reduce__(self) -> Any:
        return _again, (type(self), self.args, self.__dict__)  # another process shows the same line

    def _render_traceback_(self) -> list[str]:
        """The traceback in a notebook: only the user's lines.  After `%xmode Verbose` it shows minigrad's lines too."""
        tracebacks = notebook_shell().InteractiveTB
        yours = outside(self.__traceback__)
        if tracebacks.mode == "Verbose" or yours is None:
            return list(tracebacks.structured_traceback(type(self), self, self.__traceback__, tb_offset=1))
        alone = _again(type(self), self.args, self.__dict__)  # without its cause
        return list(tracebacks.structured_traceback(type(self), alone, yours, tb_offset=0))


def _again(cls: type[MinigradError], args: tuple[Any, ...], attributes: dict[str, Any]) -> MinigradError:
    error = cls.__new__(cls)
    error.args = args
    vars(error).update(attributes)
    return error


class ShapeError(MinigradError, ValueError, RuntimeError):
    """The shapes of an operation's inputs do not fit together.

    To broadcast, sizes must be equal or 1 in each dimension, counted from the last.  A matrix product needs as many
    columns on the left as rows on the right.

    >>> import minigrad as mg
    >>> mg.ones((2, 3)) + mg.ones((2, 4))
    Traceback (most recent call last):
    minigrad.support.errors.ShapeError: add: shapes (2, 3) and (2, 4) do not broadcast: 3 against 4 in dimension 1
    ...

    Hint: `expand_dims`, `reshape` or `x.T` change the dimensions.
    """


class DtypeError(MinigradError, TypeError, RuntimeError):
    """An operation does not support the element type of its input.

    >>> import minigrad as mg
    >>> mg.asarray([1, 2], requires_grad=True)
    Traceback (most recent call last):
    minigrad.support.errors.DtypeError: only floats can require a gradient, and this tensor is int64
    ...

    Hint: `x.astype(mg.float32)`.
    """


class DeviceError(MinigradError, RuntimeError):
    """Inputs are on different devices, or a device does not exist.

    minigrad never copies between devices without being called to, because such copies make a program slow.

    >>> import minigrad as mg
    >>> mg.ones(2) + mg.ones(2, device="cpu:1")
    Traceback (most recent call last):
    minigrad.support.errors.DeviceError: add: its inputs are on different devices, cpu and cpu:1
    ...

    Hint: move one of them, `x.to(y.device)`.
    """


class IndexingError(MinigradError, IndexError):
    """An index is out of range, or is not a valid index of a tensor.

    >>> import minigrad as mg
    >>> mg.arange(3)[5]
    Traceback (most recent call last):
    minigrad.support.errors.IndexingError: index 5 is out of range for dimension 0 of size 3
    ...

    Hint: indices run from `-size` to `size - 1`.
    """


class AxisError(MinigradError, IndexError, ValueError):
    """An axis does not exist in a tensor of this number of dimensions, or is given twice.

    >>> import minigrad as mg
    >>> mg.ones((2, 3)).sum(axis=2)
    Traceback (most recent call last):
    minigrad.support.errors.AxisError: sum: axis 2 does not exist in a tensor of 2 dimensions
    ...

    Hint: axes run from `-ndim` to `ndim - 1`.
    """


class GradError(MinigradError, RuntimeError):
    """There is no gradient to compute, or the values that it needs were deleted.

    >>> import minigrad as mg
    >>> mg.ones(2).sum().backward()
    Traceback (most recent call last):
    minigrad.support.errors.GradError: backward: this tensor has no history, shape (), dtype float32
    ...

    Hint: `requires_grad=True` on the tensors that you want gradients for; `retain_graph=True` for a second backward
    pass; `x.detach()` where no gradient should flow.
    """


class MutationError(MinigradError, RuntimeError):
    """A change in place would make a gradient wrong.

    >>> import minigrad as mg
    >>> w = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> w += 1
    Traceback (most recent call last):
    minigrad.support.errors.MutationError: in-place change of a leaf that requires a gradient...
    ...

    Hint: `with mg.no_grad():` for an update, `x = x + 1` or `x.copy()` for a new value.
    """


class TraceError(MinigradError, RuntimeError):
    """Code needs a value that does not exist yet, because the operation is only recorded or batched.

    >>> import minigrad as mg
    >>> mg.vmap(lambda x: float(x.sum()))(mg.ones((2, 3)))
    Traceback (most recent call last):
    minigrad.support.errors.TraceError: float() needs the value of a tensor inside vmap, which has 2 values, one for...
    ...

    Hint: keep the computation in tensor operations (`mg.where` instead of `if`).
    """


class NanError(MinigradError, FloatingPointError):
    """Inside `mg.debug_nans()`: the first operation whose result has a nan although its inputs have none.

    >>> import minigrad as mg
    >>> with mg.debug_nans():
    ...     mg.log(mg.asarray([-1.0]))
    Traceback (most recent call last):
    minigrad.support.errors.NanError: log made a nan from inputs without one...
    ...
    """


class ConversionError(MinigradError, TypeError, ValueError):
    """A tensor or an argument cannot be converted: many elements to one number, or a history to a NumPy array.

    >>> import minigrad as mg
    >>> bool(mg.asarray([1.0, 2.0]) > 0)
    Traceback (most recent call last):
    minigrad.support.errors.ConversionError: the truth of a tensor of 2 elements is ambiguous
    ...

    Hint: `.any()` or `.all()`, `x[i]`, `x.detach().numpy()`.
    """


class MatrixError(MinigradError, ValueError, RuntimeError):
    """A matrix has no inverse, or no Cholesky factor.

    >>> import minigrad as mg
    >>> mg.linalg.inv(mg.ones((2, 2)))
    Traceback (most recent call last):
    minigrad.support.errors.MatrixError: inv: the matrix is singular: its rows are not independent, so there is...
    ...

    Hint: add a small multiple of the unit matrix, `x + 1e-6 * mg.eye(n)`, or find out why the rows depend on each
    other.
    """


class CheckError(MinigradError, AssertionError):
    """`gradcheck` found a gradient that differs from the numerical gradient; the message says where and by how much.

    A gradient rule is wrong, a `detach()` cuts a path, or the function has a kink or a jump there.
    `mg.jit(f, check=True)` raises this error too if a program gives another result than the function.

    >>> import minigrad as mg
    >>> mg.gradcheck(lambda x: x * x.detach(), [mg.asarray([3.0])])
    Traceback (most recent call last):
    minigrad.support.errors.CheckError: ...
    ...

    Hint: compare the rule with the derivative on paper; check at points away from kinks.
    """


class CompileError(MinigradError, RuntimeError):
    """A kernel could not be compiled, or there is no compiler.

    Programs then run on NumPy, with a warning: the results are the same, but take longer.

    >>> from minigrad.compile.running.targets import compiled
    >>> compiled({}, backend="fortran")
    Traceback (most recent call last):
    minigrad.support.errors.CompileError: there is no backend named 'fortran'
      Expected: llvm or wasm or numpy
    ...

    Hint: `python -m pip install llvmlite`; or set MINIGRAD_BACKEND=numpy, which turns the warning off.
    """


class ScriptError(MinigradError, TypeError):
    """`mg.script` cannot rewrite this function: its source is missing, or would mean something else when rewritten.

    >>> import minigrad as mg
    >>> mg.script(lambda x: x if x > 0 else -x)
    Traceback (most recent call last):
    minigrad.support.errors.ScriptError: script: <lambda>, at ...
    ...

    Hint: define the function with `def` in a file or a notebook cell, and put `@mg.script` above it.
    """


class FileError(MinigradError, ValueError):
    """A file cannot be read, because it is damaged, of a different kind or unsafe; or it cannot store a value.

    Nothing is done in part: a file is written as a whole or not at all, and nothing is loaded from a file with a fault.

    >>> import minigrad as mg
    >>> mg.io.save_file({"weight": mg.ones(2), "name": "first"}, "weights.safetensors")
    Traceback (most recent call last):
    minigrad.support.errors.FileError: save_file: 'name' is a str, and files of weights hold tensors only...
    ...

    Hint: copy or write the file again; `Checkpoints.resume()` continues from the newest complete file.
    """


class MissingFileError(FileError, FileNotFoundError):
    """The file does not exist.

    >>> import minigrad as mg
    >>> mg.load_program("nowhere.program")
    Traceback (most recent call last):
    minigrad.support.errors.MissingFileError: load_program: No such file or directory: nowhere.program
    ...

    Hint: a relative path begins at the folder in which Python runs.
    """


class StorageError(FileError, OSError):
    """The operating system cannot read or write a file: the disk is full, or a permission is missing.

    >>> import minigrad as mg
    >>> mg.load_program(".")
    Traceback (most recent call last):
    minigrad.support.errors.StorageError: load_program: Is a directory: .
    ...

    Hint: free some space on the disk, or choose another folder.
    """


class PackageError(MinigradError, ImportError):
    """An optional package is needed and is not installed.

    >>> from minigrad.support.packages import needed
    >>> needed("nowhere", "load_table")
    Traceback (most recent call last):
    minigrad.support.errors.PackageError: load_table needs the package nowhere, which is not installed
    ...

    Hint: the message names the command that installs the package.
    """


class MissingNameError(MinigradError, AttributeError):
    """minigrad has no such name: it is misspelt, or another library has it.

    >>> import minigrad as mg
    >>> mg.cat
    Traceback (most recent call last):
    minigrad.support.errors.MissingNameError: minigrad has no 'cat'
      Hint: mg.concat([x, y])
    ...

    Hint: `lectures/reference/coming_from.md` lists the names of PyTorch, NumPy and JAX with those of minigrad.
    """


class MissingImportError(MinigradError, ModuleNotFoundError):
    """An import names something that minigrad lacks: it is misspelt, or another library has it.

    >>> import minigrad.nn.functional as F
    Traceback (most recent call last):
    minigrad.support.errors.MissingImportError: minigrad.nn has no 'functional'
      Hint: mg.relu, mg.softmax, mg.cross_entropy
    ...

    Hint: `import minigrad as mg` is enough for every function; layers are in `mg.nn`, optimizers in `mg.optim`.
    """


class DeclarationError(MinigradError, ValueError):
    """The declaration of a primitive contradicts itself, or names something that does not exist.

    >>> from minigrad.core.primitive import Primitive
    >>> Primitive("cube", "elementwise", ("x",), None, rules={"x": lambda g, y: 3 * g * y * y})
    Traceback (most recent call last):
    minigrad.support.errors.DeclarationError: cube: the gradient rule of x names y, which is not an input
    ...

    Hint: use the names of the declared inputs; a rule may also have parameters `out`, `node` and `index`.
    """


class DistributedError(MinigradError, RuntimeError):
    """The ranks of a distributed run do not fit together: they call different collectives, or one is missing.

    >>> import minigrad as mg
    >>> mg.distributed.communicator().send(mg.ones(2), to=1)
    Traceback (most recent call last):
    minigrad.support.errors.DistributedError: send: to=1 is not a rank of this run, which has one rank, 0
    ...

    Hint: `python -m minigrad.distributed -n 4 train.py` starts four ranks; all of them call the same collectives.
    """


class Gone(MinigradError, RuntimeError):
    """A value cannot be computed again, because something that it was computed from has changed or was deleted.

    >>> import minigrad as mg
    >>> mg.replay(mg.ones(2))
    Traceback (most recent call last):
    minigrad.support.errors.Gone: nothing was recorded for this tensor; use `with mg.record():`
    ...

    Hint: keep the tensors that it was computed from, and change copies of them.
    """


class GradientWarning(UserWarning):
    """A differentiated function made a Python number from a tensor: no gradient flows through that number."""


class ClassesWarning(UserWarning):
    """A loss takes the last dimension as the classes, but these shapes fit classes in dimension 1 too."""


class WideningWarning(UserWarning):
    """A NumPy number of float64, such as `np.sqrt(2.0)`, makes the result of an operation on float32 float64."""


_WARNED: set[tuple[str, int, type[Warning]]] = set()


def warn_once(message: str, category: type[Warning]) -> None:
    """Warn at the user's line, once for each line."""
    filename, line = line_of(caller())
    if (filename, line, category) not in _WARNED:
        _WARNED.add((filename, line, category))
        warnings.warn_explicit(message, category, filename, line)
