"""Linear algebra: `mg.linalg`.  The last two dimensions are the matrix, those before count the matrices of a stack."""

from .arguments.public import public
from .ops.contract import diagonal, matmul, outer, tensordot, trace, vecdot
from .ops.linalg import cholesky, det, inv, matrix_norm, norm, slogdet, solve, vector_norm
from .ops.view import matrix_transpose

__all__ = [
    "matmul", "matrix_transpose", "outer", "tensordot", "vecdot", "diagonal", "trace",
    "solve", "inv", "cholesky", "det", "slogdet",
    "norm", "vector_norm", "matrix_norm",
]

public(__all__, globals())
