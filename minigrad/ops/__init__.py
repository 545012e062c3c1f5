"""The primitives, one file for each family, and the functions composed from them."""

from ..arguments.public import public
from ..core import debug, dtypes
from ..core.absent import hint_at_functions
from . import (
    bits,
    collectives,
    comparison,
    contract,
    convolution,
    creation,
    effects,
    elementary,
    elementwise,
    factors,
    functional,
    index,
    interop,
    joining,
    linalg,
    losses,
    normalization,
    numpy_functions,
    operators,
    ordering,
    pooling,
    positions,
    random,
    reduce,
    resampling,
    segments,
    special,
    statistics,
    transfer,
    view,
    windows,
)

# A call of these takes about a microsecond, so they check their arguments themselves.
QUICK = frozenset((
    "mean", "reshape", "permute_dims", "broadcast_to", "matmul", "pow",
))

for _room in (
    bits, comparison, contract, convolution, creation, elementary, elementwise, functional, index, joining, losses,
    normalization, ordering, pooling, positions, reduce, resampling, segments, special, statistics, view, windows,
):
    public(_room.__all__, vars(_room), quick=QUICK, eager=("linspace",))
    hint_at_functions(vars(_room), _room.__all__)
public([
    "cholesky", "cross", "det", "inv", "matrix_norm", "matrix_power", "norm", "slogdet", "solve", "solve_triangular",
    "vector_norm",
], vars(linalg))
public(["eigh", "eigvalsh", "lstsq", "matrix_rank", "pinv", "qr", "svd", "svdvals"], vars(factors))
public(["to_device", "to"], vars(transfer))
public(["from_dlpack"], vars(interop))
public(["Generator"], vars(random))
public(["can_cast", "isdtype", "result_type"], vars(dtypes))
public(["debug_nans"], vars(debug))
