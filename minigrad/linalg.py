"""Linear algebra: `mg.linalg`.  The last two dimensions are the matrix, those before count the matrices of a stack."""

from .arguments.public import public
from .ops.contract import diagonal, matmul, outer, tensordot, trace, vecdot
from .ops.factors import eigh, eigvalsh, lstsq, matrix_rank, pinv, qr, svd, svdvals
from .ops.linalg import (
    cholesky,
    cross,
    det,
    inv,
    matrix_norm,
    matrix_power,
    norm,
    slogdet,
    solve,
    solve_triangular,
    vector_norm,
)
from .ops.view import matrix_transpose

__all__ = [
    "matmul", "matrix_transpose", "outer", "tensordot", "vecdot", "diagonal", "trace",
    "solve", "solve_triangular", "inv", "cholesky", "det", "slogdet", "matrix_power", "cross",
    "eigh", "eigvalsh", "svd", "svdvals", "qr", "pinv", "matrix_rank", "lstsq",
    "norm", "vector_norm", "matrix_norm",
]

public(__all__, globals())
