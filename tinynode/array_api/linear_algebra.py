"""The extension ``linalg``: decompositions, norms, products of matrices.

Gradients come from ``tinynode.functions.linalg``, for real matrices. Complex matrices give
values; a gradient through a complex matrix is an error.
"""

from __future__ import annotations

from typing import Any

from tinynode import functions
from tinynode.array_api.manipulation import Manipulation
from tinynode.core.variable import Variable
from tinynode.functions import linalg
from tinynode.functions.complex_numbers import is_complex
from tinynode.functions.decompositions import EighResult, SvdResult
from tinynode.functions.linalg import QrResult, SlogDetResult


class LinearAlgebra(Manipulation):
    """The functions of ``linalg``; matrices stand in the last two axes."""

    __name__ = "tinynode.array_api.linalg"

    def _library(self, function: str, *xs: Any, **options: Any) -> Any:
        """The library's function on the arrays, where no rule is known."""
        arrays = [self._array_without_rule(f"linalg.{function}", x) for x in xs]
        return getattr(self._xp.linalg, function)(*arrays, **options)

    def cholesky(self, x: Any, /, *, upper: bool = False) -> Variable:
        """The triangular L with x = L L^H, or U with x = U^H U."""
        x = self._lift("linalg.cholesky", x)
        if is_complex(x):
            return self._new(self._library("cholesky", x, upper=upper))
        return linalg.cholesky(x, upper=upper)

    def cross(self, x1: Any, x2: Any, /, *, axis: int = -1) -> Variable:
        """The cross product of vectors of length 3."""
        x1, x2 = self._lift("linalg.cross", x1), self._lift("linalg.cross", x2)
        return linalg.cross(x1, x2, axis=axis)

    def det(self, x: Any, /) -> Variable:
        """The determinant."""
        x = self._lift("linalg.det", x)
        return self._new(self._library("det", x)) if is_complex(x) else linalg.det(x)

    def diagonal(self, x: Any, /, *, offset: int = 0) -> Variable:
        """The diagonal of matrices."""
        return linalg.diagonal(self._lift("linalg.diagonal", x), offset=offset)

    def eig(self, x: Any, /) -> EighResult:
        """Eigenvalues and eigenvectors of any square matrix; without a gradient rule."""
        return EighResult(*[self._new(array) for array in self._library("eig", x)])

    def eigh(self, x: Any, /) -> EighResult:
        """Eigenvalues and eigenvectors of a symmetric matrix."""
        x = self._lift("linalg.eigh", x)
        if is_complex(x):
            return EighResult(*[self._new(array) for array in self._library("eigh", x)])
        return linalg.eigh(x)

    def eigvals(self, x: Any, /) -> Variable:
        """Eigenvalues of any square matrix; without a gradient rule."""
        return self._new(self._library("eigvals", x))

    def eigvalsh(self, x: Any, /) -> Variable:
        """Eigenvalues of a symmetric matrix."""
        x = self._lift("linalg.eigvalsh", x)
        return self._new(self._library("eigvalsh", x)) if is_complex(x) else linalg.eigvalsh(x)

    def inv(self, x: Any, /) -> Variable:
        """The inverse."""
        x = self._lift("linalg.inv", x)
        return self._new(self._library("inv", x)) if is_complex(x) else linalg.inv(x)

    def matrix_norm(self, x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Variable:
        """A norm of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
        x = self._lift("linalg.matrix_norm", x)
        if is_complex(x):
            return self._new(self._library("matrix_norm", x, keepdims=keepdims, ord=ord))
        return linalg.matrix_norm(x, keepdims=keepdims, ord=ord)

    def matrix_power(self, x: Any, n: int, /) -> Variable:
        """The product of n copies of a matrix; for negative n of the inverse."""
        x = self._lift("linalg.matrix_power", x)
        if is_complex(x):
            array = self._array_without_rule("linalg.matrix_power", x)
            return self._new(self._xp.linalg.matrix_power(array, n))
        return linalg.matrix_power(x, n)

    def matrix_rank(self, x: Any, /, *, rtol: Any = None) -> Variable:
        """The number of singular values above a tolerance; an integer, without a gradient."""
        array = self._array("linalg.matrix_rank", x)
        tolerance = self._array("linalg.matrix_rank", rtol) if hasattr(rtol, "dtype") else rtol
        return self._new(self._xp.linalg.matrix_rank(array, rtol=tolerance))

    def outer(self, x1: Any, x2: Any, /) -> Variable:
        """The products of all elements of two vectors."""
        return linalg.outer(self._lift("linalg.outer", x1), self._lift("linalg.outer", x2))

    def pinv(self, x: Any, /, *, rtol: Any = None) -> Variable:
        """The Moore-Penrose pseudo-inverse."""
        x = self._lift("linalg.pinv", x)
        if is_complex(x) or hasattr(rtol, "dtype"):
            rtol = self._array("linalg.pinv", rtol) if hasattr(rtol, "dtype") else rtol
            return self._new(self._library("pinv", x, rtol=rtol))
        return linalg.pinv(x, rtol=rtol)

    def qr(self, x: Any, /, *, mode: str = "reduced") -> QrResult:
        """x = Q R, Q with orthonormal columns, R upper triangular."""
        x = self._lift("linalg.qr", x)
        if is_complex(x) or (mode == "complete" and not x.requires_grad):
            return QrResult(*[self._new(array) for array in self._library("qr", x, mode=mode)])
        return linalg.qr(x, mode=mode)

    def slogdet(self, x: Any, /) -> SlogDetResult:
        """Sign and logarithm of the absolute value of the determinant."""
        x = self._lift("linalg.slogdet", x)
        if is_complex(x):
            return SlogDetResult(*[self._new(array) for array in self._library("slogdet", x)])
        return linalg.slogdet(x)

    def solve(self, x1: Any, x2: Any, /) -> Variable:
        """The solution y of x1 y = x2."""
        x1, x2 = self._lift("linalg.solve", x1), self._lift("linalg.solve", x2)
        if is_complex(x1) or is_complex(x2):
            return self._new(self._library("solve", x1, x2))
        return linalg.solve(x1, x2)

    def svd(self, x: Any, /, *, full_matrices: bool = True) -> SvdResult:
        """x = U diag(S) Vh."""
        x = self._lift("linalg.svd", x)
        if is_complex(x) or (full_matrices and not x.requires_grad):
            found = self._library("svd", x, full_matrices=full_matrices)
            return SvdResult(*[self._new(array) for array in found])
        return linalg.svd(x, full_matrices=full_matrices)

    def svdvals(self, x: Any, /) -> Variable:
        """The singular values, the largest first."""
        x = self._lift("linalg.svdvals", x)
        return self._new(self._library("svdvals", x)) if is_complex(x) else linalg.svdvals(x)

    def trace(self, x: Any, /, *, offset: int = 0, dtype: Any = None) -> Variable:
        """The sum along a diagonal."""
        x = self._cast("linalg.trace", x, dtype)
        return functions.sum(linalg.diagonal(x, offset=offset), -1)

    def vector_norm(
        self, x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2
    ) -> Variable:
        """(sum |x|^ord)^(1 / ord) over axes; inf, -inf and 0 as the standard has them."""
        x = self._lift("linalg.vector_norm", x)
        if is_complex(x):
            found = self._library("vector_norm", x, axis=axis, keepdims=keepdims, ord=ord)
            return self._new(found)
        return linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
