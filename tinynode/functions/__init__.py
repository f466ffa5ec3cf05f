"""The differentiable functions: a class and a lower-case function for each operation.

Users call the functions. The FunctionNode classes are public for readers of graphs, and for
writers of hooks and kernels. Linear algebra beyond products is in ``linalg``, Fourier
transforms in ``fft``. The files follow the
chapters of the Array API standard, and the families of networks. The public names of a file are
in its ``__all__``.
"""

import typing

from tinynode import habits
from tinynode.core import operators
from tinynode.functions import (
    activation,
    arithmetic,
    bitwise,
    cofactors,
    comparison,
    complex_numbers,
    convolution,
    cross_entropies,
    ctc_losses,
    data_types,
    decompositions,
    draws,
    exponential,
    fft,
    gaussian,
    indexing,
    keyed,
    linalg,
    logistic,
    loss,
    manipulation,
    masking,
    network,
    normalization,
    pooling,
    products,
    rectifiers,
    resizing,
    scattering,
    searching,
    shapes,
    special,
    statistical,
    triangular,
    trigonometric,
    volumes,
)
from tinynode.functions.activation import *
from tinynode.functions.arithmetic import *
from tinynode.functions.bitwise import *
from tinynode.functions.cofactors import *
from tinynode.functions.comparison import *
from tinynode.functions.complex_numbers import *
from tinynode.functions.convolution import *
from tinynode.functions.cross_entropies import *
from tinynode.functions.ctc_losses import *
from tinynode.functions.data_types import *
from tinynode.functions.decompositions import *
from tinynode.functions.draws import *
from tinynode.functions.exponential import *
from tinynode.functions.gaussian import *
from tinynode.functions.indexing import *
from tinynode.functions.keyed import *
from tinynode.functions.linalg import (
    Cholesky,
    Det,
    Direction,
    Inv,
    Pinv,
    Qr,
    SlogDet,
    Solve,
    VectorNorm,
)
from tinynode.functions.logistic import *
from tinynode.functions.loss import *
from tinynode.functions.manipulation import *
from tinynode.functions.masking import *
from tinynode.functions.network import *
from tinynode.functions.normalization import *
from tinynode.functions.pooling import *
from tinynode.functions.products import *
from tinynode.functions.rectifiers import *
from tinynode.functions.resizing import *
from tinynode.functions.scattering import *
from tinynode.functions.searching import *
from tinynode.functions.shapes import *
from tinynode.functions.special import *
from tinynode.functions.statistical import *
from tinynode.functions.triangular import *
from tinynode.functions.trigonometric import *
from tinynode.functions.volumes import *

operators.arithmetic = arithmetic  # so that ``x * y`` finds the function without a search

__all__ = [
    "Cholesky",
    "Det",
    "Direction",
    "Inv",
    "Pinv",
    "Qr",
    "SlogDet",
    "Solve",
    "VectorNorm",
    "fft",
    "linalg",
]
__all__ += activation.__all__
__all__ += arithmetic.__all__
__all__ += bitwise.__all__
__all__ += cofactors.__all__
__all__ += comparison.__all__
__all__ += complex_numbers.__all__
__all__ += convolution.__all__
__all__ += cross_entropies.__all__
__all__ += ctc_losses.__all__
__all__ += data_types.__all__
__all__ += decompositions.__all__
__all__ += draws.__all__
__all__ += exponential.__all__
__all__ += gaussian.__all__
__all__ += indexing.__all__
__all__ += keyed.__all__
__all__ += logistic.__all__
__all__ += loss.__all__
__all__ += manipulation.__all__
__all__ += masking.__all__
__all__ += network.__all__
__all__ += normalization.__all__
__all__ += pooling.__all__
__all__ += products.__all__
__all__ += rectifiers.__all__
__all__ += resizing.__all__
__all__ += scattering.__all__
__all__ += searching.__all__
__all__ += shapes.__all__
__all__ += special.__all__
__all__ += statistical.__all__
__all__ += triangular.__all__
__all__ += trigonometric.__all__
__all__ += volumes.__all__

if not typing.TYPE_CHECKING:
    # classes are read by ``F.Sum``: neither completion nor ``import *`` gives all 160 of them
    _every_name = __all__
    __all__ = [name for name in _every_name if not isinstance(globals()[name], type)]
    __dir__ = __all__.copy  # for completion

    def __getattr__(name: str) -> typing.Never:
        """The error for a wrong name; Python asks only for names that do not exist."""
        raise habits.missing_attribute("F", name, _every_name)
