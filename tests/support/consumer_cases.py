"""Calls of code that others wrote against the Array API standard, with an argument for each.

A case is a function of an array ``x`` and of ``c``, which makes an array of the same library from
numbers. SciPy must be imported with ``SCIPY_ARRAY_API=1`` in the environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # read when SciPy is imported

import array_api_compat
import array_api_extra as xpx
import numpy as np
import scipy.cluster.vq
import scipy.differentiate
import scipy.fft
import scipy.integrate
import scipy.optimize
import scipy.optimize.elementwise as roots
import scipy.signal
import scipy.special
import scipy.stats
import sklearn
import xarray
from scipy.spatial.transform import RigidTransform, Rotation
from sklearn import decomposition, linear_model, preprocessing
from sklearn.metrics import pairwise

special, stats, signal = scipy.special, scipy.stats, scipy.signal
integrate, differentiate = scipy.integrate, scipy.differentiate

V = np.array([0.6, -1.2, 2.5, 0.3, 1.1, -0.7])
P = np.array([0.6, 1.2, 2.5, 0.3, 1.1, 0.7])
U = np.array([0.3, 0.62, 0.11, 0.8, 0.45, 0.25])
Y = np.array([1.0, 0.2, -0.5, 1.4, 0.9, 0.1])
W = np.concatenate([V, Y + 0.05])
M = np.array([[0.6, -1.2, 2.5], [-0.4, 0.3, 1.7], [1.1, 0.8, -0.9], [2.0, -0.5, 0.4]])
S = M[:3] @ M[:3].T + np.eye(3)
Q = np.array([0.5, -0.4, 0.6, 0.7])
Z = V[:3]


class Case(NamedTuple):
    """A call; the result is an array, or a tuple of arrays."""

    name: str
    x: Any
    call: Callable[[Any, Callable[[Any], Any]], Any]


def xp_of(x: Any) -> Any:
    return array_api_compat.array_namespace(x)


def real(y: Any) -> Any:
    """The absolute value of a complex array: a real number to differentiate."""
    xp = xp_of(y)
    return xp.abs(y) if xp.isdtype(y.dtype, "complex floating") else y


def dispatched(estimator: Callable[[], Any]) -> Callable[[Any, Any], Any]:
    """``fit_transform`` of an estimator of scikit-learn, on arrays of any library."""

    def call(x: Any, c: Any) -> Any:
        with sklearn.config_context(array_api_dispatch=True):
            return estimator().fit_transform(x)

    return call


def kernel(function: Any, *options: Any) -> Callable[[Any, Any], Any]:
    """A pairwise function of scikit-learn between x and x + 0.3."""

    def call(x: Any, c: Any) -> Any:
        with sklearn.config_context(array_api_dispatch=True):
            return function(x, c(M + 0.3), *options)

    return call


def ridge(x: Any, c: Any) -> Any:
    with sklearn.config_context(array_api_dispatch=True):
        return linear_model.Ridge(solver="svd").fit(x, c(Y[:4])).coef_


def of_one(function: Any) -> Callable[[Any, Any], Any]:
    """A function of x alone."""
    return lambda x, c: function(x)


def of_two(function: Any, other: Any) -> Callable[[Any, Any], Any]:
    """A function of x and of an array of numbers."""
    return lambda x, c: function(x, c(other))


def statistic(function: Any, *others: Any) -> Callable[[Any, Any], Any]:
    return lambda x, c: function(x, *[c(other) for other in others]).statistic


def pvalue(function: Any, *others: Any) -> Callable[[Any, Any], Any]:
    return lambda x, c: function(x, *[c(other) for other in others]).pvalue


def arrays(x: Any, **dims: Any) -> Any:
    return xarray.DataArray(x, dims=("a", "b"))


STATS = [
    *[
        Case(f"stats.{name}", x, of_one(getattr(stats, name)))
        for x, names in (
            (P, "gmean hmean gstd gzscore entropy"),
            (V, "kurtosis skew variation sem tmean tvar tstd zscore iqr circmean circvar"),
            (V, "circstd kstat kstatvar median_abs_deviation lmoment"),
        )
        for name in names.split()
    ],
    Case("stats.moment(3)", V, lambda x, c: stats.moment(x, order=3)),
    Case("stats.pmean", P, lambda x, c: stats.pmean(x, 3.0)),
    Case("stats.gmean(weights)", P, lambda x, c: stats.gmean(x, weights=c(U))),
    Case("stats.tmin", V, lambda x, c: stats.tmin(x, -1.0)),
    Case("stats.tmax", V, lambda x, c: stats.tmax(x, 2.0)),
    Case("stats.tmean(limits)", V, lambda x, c: stats.tmean(x, (-1.0, 2.0))),
    Case("stats.tvar(limits)", V, lambda x, c: stats.tvar(x, (-1.0, 2.0))),
    Case("stats.tsem(limits)", V, lambda x, c: stats.tsem(x, (-1.0, 2.0))),
    Case("stats.zmap", V, of_two(stats.zmap, Y)),
    Case("stats.trim_mean", V, lambda x, c: stats.trim_mean(x, 0.2)),
    Case("stats.describe", V, lambda x, c: stats.describe(x).variance),
    Case("stats.entropy(x, y)", P, of_two(stats.entropy, U)),
    Case("stats.differential_entropy", V, of_one(stats.differential_entropy)),
    Case("stats.quantile", V, of_two(stats.quantile, [0.3, 0.7])),
    Case("stats.directional_stats", M, lambda x, c: stats.directional_stats(x).mean_direction),
    Case("stats.boxcox_llf", P, lambda x, c: stats.boxcox_llf(0.5, x)),
    Case("stats.yeojohnson_llf", V, lambda x, c: stats.yeojohnson_llf(0.5, x)),
    Case("stats.false_discovery_control", U, of_one(stats.false_discovery_control)),
    Case("stats.sigmaclip", V, lambda x, c: stats.sigmaclip(x).clipped),
    *[
        case
        for name in ("skewtest", "kurtosistest", "normaltest", "jarque_bera")
        for case in (
            Case(f"stats.{name}", W, statistic(getattr(stats, name))),
            Case(f"stats.{name}.pvalue", W, pvalue(getattr(stats, name))),
        )
    ],
    *[
        case
        for name in ("ttest_ind", "ttest_rel", "pearsonr", "bartlett", "levene", "f_oneway")
        for case in (
            Case(f"stats.{name}", V, statistic(getattr(stats, name), Y)),
            Case(f"stats.{name}.pvalue", V, pvalue(getattr(stats, name), Y)),
        )
    ],
    Case("stats.ttest_1samp", V, lambda x, c: stats.ttest_1samp(x, 0.1).statistic),
    Case("stats.ttest_1samp.pvalue", V, lambda x, c: stats.ttest_1samp(x, 0.1).pvalue),
    Case("stats.chisquare", P, lambda x, c: stats.chisquare(x, sum_check=False).statistic),
    Case("stats.chisquare.pvalue", P, lambda x, c: stats.chisquare(x, sum_check=False).pvalue),
    Case("stats.combine_pvalues", U, statistic(stats.combine_pvalues)),
    Case("stats.combine_pvalues.pvalue", U, pvalue(stats.combine_pvalues)),
    Case("stats.alexandergovern", V, lambda x, c: stats.alexandergovern(x, c(Y)).statistic),
    # these go through numpy.asarray inside: no library can differentiate them
    Case("stats.norm.logpdf", V, of_one(stats.norm.logpdf)),
    Case("stats.linregress", V, lambda x, c: stats.linregress(x, c(Y)).slope),
    Case("stats.expectile", V, of_one(stats.expectile)),
]

SPECIAL = [
    *[
        Case(f"special.{name}", x, of_one(getattr(special, name)))
        for x, names in (
            (V, "erf erfc expit ndtr log_ndtr i0 i0e i1 i1e erfcx dawsn j0 j1 cbrt"),
            (P, "gammaln digamma entr exp1 expi gamma spence rgamma"),
            (U, "logit ndtri erfinv"),
        )
        for name in names.split()
    ],
    Case("special.softmax", M, lambda x, c: special.softmax(x, axis=1)),
    Case("special.log_softmax", M, lambda x, c: special.log_softmax(x, axis=1)),
    Case("special.logsumexp", M, lambda x, c: special.logsumexp(x, axis=1)),
    Case("special.logsumexp(b)", V, lambda x, c: special.logsumexp(x, b=c(P))),
    Case("special.xlogy", P, of_two(special.xlogy, U)),
    Case("special.rel_entr", P, of_two(special.rel_entr, U)),
    Case("special.kl_div", P, of_two(special.kl_div, U)),
    Case("special.betaln", P, of_two(special.betaln, U)),
    Case("special.beta", P, of_two(special.beta, U)),
    Case("special.betainc", U, lambda x, c: special.betainc(c(P), c(P + 1), x)),
    Case("special.betaincc", U, lambda x, c: special.betaincc(c(P), c(P + 1), x)),
    Case("special.gammainc", P, lambda x, c: special.gammainc(c(U), x)),
    Case("special.gammaincc", P, lambda x, c: special.gammaincc(c(U), x)),
    Case("special.chdtr", P, lambda x, c: special.chdtr(c(P), x)),
    Case("special.stdtr", V, lambda x, c: special.stdtr(c(P + 2), x)),
    Case("special.zeta", P, lambda x, c: special.zeta(c(P + 2), x)),
]

CALCULUS = [
    Case("integrate.trapezoid", V, lambda x, c: integrate.trapezoid(x, dx=0.1)),
    Case("integrate.trapezoid(x)", P, lambda x, c: integrate.trapezoid(c(Y), x)),
    Case(
        "integrate.cumulative_trapezoid",
        V,
        lambda x, c: integrate.cumulative_trapezoid(x, initial=0),
    ),
    Case("integrate.simpson", V, lambda x, c: integrate.simpson(x, dx=0.1)),
    Case("integrate.simpson(x)", V, lambda x, c: integrate.simpson(x, x=c(np.cumsum(P)))),
    Case("integrate.cumulative_simpson", V, lambda x, c: integrate.cumulative_simpson(x, dx=0.1)),
    Case("integrate.romb", V[:5], of_one(integrate.romb)),
    Case(
        "integrate.tanhsinh",
        P,
        lambda x, c: (
            integrate.tanhsinh(
                lambda t, a: xp_of(t).exp(-t * a), 0 * x, 1 + 0 * x, args=(x,)
            ).integral
        ),
    ),
    Case(
        "integrate.tanhsinh(limit)",
        P,
        lambda x, c: integrate.tanhsinh(lambda t: t**3, 0 * x, x).integral,
    ),
    Case(
        "integrate.tanhsinh(infinite)",
        P,
        lambda x, c: (
            integrate.tanhsinh(
                lambda t, a: xp_of(t).exp(-t * a), c(np.zeros(6)), c(np.full(6, np.inf)), args=(x,)
            ).integral
        ),
    ),
    Case(
        "integrate.cubature",
        P,
        lambda x, c: (
            integrate.cubature(
                lambda t, a: xp_of(t).exp(-t * a), c([0.0]), c([1.0]), args=(x,)
            ).estimate
        ),
    ),
    Case(
        "integrate.nsum",
        P,
        lambda x, c: (
            integrate.nsum(
                lambda k, a: 1 / k ** (2 + a), c(np.ones(6)), c(np.full(6, 50.0)), args=(x,)
            ).sum
        ),
    ),
    Case(
        "integrate.nsum(infinite)",
        P,
        lambda x, c: (
            integrate.nsum(
                lambda k, a: xp_of(k).exp(-k * a), c(np.ones(6)), c(np.full(6, np.inf)), args=(x,)
            ).sum
        ),
    ),
    Case(
        "differentiate.derivative",
        P,
        lambda x, c: differentiate.derivative(lambda t, a: t**2 * a, c(P), args=(x,)).df,
    ),
    Case(
        "differentiate.derivative(x)",
        P,
        lambda x, c: differentiate.derivative(lambda t: t**3, x).df,
    ),
    Case("differentiate.jacobian", P[:3], lambda x, c: differentiate.jacobian(_cube, x).df),
    Case("differentiate.hessian", P[:3], lambda x, c: differentiate.hessian(_cubes, x).ddf),
    Case(
        "optimize.find_root",
        P,
        lambda x, c: roots.find_root(lambda t, a: t**2 - a, (0 * x, 3 + 0 * x), args=(x,)).x,
    ),
    Case(
        "optimize.bracket_root",
        P,
        lambda x, c: roots.bracket_root(
            lambda t, a: t**2 - a, 0 * x, 3 + 0 * x, args=(x,)
        ).f_bracket[0],
    ),
    Case("optimize.rosen", V, of_one(scipy.optimize.rosen)),
    Case("optimize.rosen_der", V, of_one(scipy.optimize.rosen_der)),
    Case("optimize.rosen_hess", V, of_one(scipy.optimize.rosen_hess)),
    Case("optimize.rosen_hess_prod", V, of_two(scipy.optimize.rosen_hess_prod, Y)),
]


def _cube(t: Any) -> Any:
    return t**3


def _cubes(t: Any) -> Any:
    return xp_of(t).sum(t**3, axis=0)


SIGNAL = [
    *[
        Case(f"signal.{name}", V, of_two(getattr(signal, name), Y))
        for name in ("convolve", "correlate", "fftconvolve", "oaconvolve")
    ],
    Case("signal.oaconvolve(blocks)", np.sin(np.arange(80.0)), of_two(signal.oaconvolve, Y[:3])),
    Case("signal.detrend", V, of_one(signal.detrend)),
    Case("signal.detrend(constant)", V, lambda x, c: signal.detrend(x, type="constant")),
    Case("signal.hilbert", V, lambda x, c: real(signal.hilbert(x))),
    Case("signal.envelope", V, of_one(signal.envelope)),
    Case("signal.freqz", V, lambda x, c: real(signal.freqz(x, worN=5)[1])),
    Case("signal.freqz_sos", P, lambda x, c: real(signal.freqz_sos(x[None] / x[3], worN=5)[1])),
    Case("signal.freqs", V, lambda x, c: real(signal.freqs(x, c([1.0, 0.3]), worN=c(U))[1])),
    Case("signal.resample", V, lambda x, c: signal.resample(x, 4)),
    Case("signal.firwin", P, lambda x, c: signal.firwin(5, x[0] / 2)),
    Case("signal.savgol_filter", V, lambda x, c: signal.savgol_filter(x, 5, 2)),
    Case("signal.vectorstrength", V, lambda x, c: signal.vectorstrength(x, 2.0)[0]),
    Case("signal.normalize", V, lambda x, c: signal.normalize(x[:2], x[2:5])[0]),
    Case("signal.lp2lp_zpk", V, lambda x, c: signal.lp2lp_zpk(x[:2], x[2:5], 1.0)[1]),
    Case("signal.bilinear_zpk", V, lambda x, c: signal.bilinear_zpk(x[:2], x[2:5], 1.0, 2.0)[1]),
    *[
        Case(f"fft.{name}", x, lambda x, c, name=name: real(getattr(scipy.fft, name)(x)))
        for x, names in ((V, "fft ifft rfft ihfft"), (M, "fft2 rfftn"))
        for name in names.split()
    ],
    Case("fft.fftshift", V, of_one(scipy.fft.fftshift)),
    # these go through numpy.asarray inside: no library can differentiate them
    Case("signal.lfilter", V, lambda x, c: signal.lfilter(c([1.0, 0.4]), c([1.0, 0.3]), x)),
    Case("signal.welch", V, lambda x, c: signal.welch(x)[1]),
    Case("fft.dct", V, of_one(scipy.fft.dct)),
]

SPATIAL = [
    *[
        Case(f"Rotation.{name}", Q, lambda x, c, n=name: getattr(Rotation.from_quat(x), n)())
        for name in ("as_matrix", "as_rotvec", "as_quat", "as_mrp")
    ],
    Case("Rotation.as_euler", Q, lambda x, c: Rotation.from_quat(x).as_euler("zyx")),
    Case("Rotation.from_rotvec", Z, lambda x, c: Rotation.from_rotvec(x).as_matrix()),
    Case("Rotation.apply", Z, lambda x, c: Rotation.from_rotvec(x).apply(c(M))),
    Case("Rotation.apply(x)", M, lambda x, c: Rotation.from_rotvec(c(Z)).apply(x)),
    Case("Rotation.from_euler", Z, lambda x, c: Rotation.from_euler("xyz", x).as_matrix()),
    Case("Rotation.from_matrix", S, lambda x, c: Rotation.from_matrix(x).as_quat()),
    Case("Rotation.from_mrp", Z, lambda x, c: Rotation.from_mrp(x).as_matrix()),
    Case("Rotation.inv", Z, lambda x, c: Rotation.from_rotvec(x).inv().as_quat()),
    Case("Rotation.magnitude", Z, lambda x, c: Rotation.from_rotvec(x).magnitude()),
    Case(
        "Rotation.mul",
        Z,
        lambda x, c: (Rotation.from_rotvec(x) * Rotation.from_rotvec(c(V[3:]))).as_quat(),
    ),
    Case("Rotation.pow", Z, lambda x, c: (Rotation.from_rotvec(x) ** 0.5).as_quat()),
    Case(
        "RigidTransform.from_translation",
        Z,
        lambda x, c: RigidTransform.from_translation(x).apply(c(M)),
    ),
    *[
        Case(
            f"RigidTransform.{name}",
            V,
            lambda x, c, n=name: getattr(RigidTransform.from_exp_coords(x), n)(),
        )
        for name in ("as_matrix", "as_exp_coords", "as_dual_quat")
    ],
    Case(
        "RigidTransform.inv", V, lambda x, c: RigidTransform.from_exp_coords(x).inv().as_matrix()
    ),
    Case("cluster.whiten", M, of_one(scipy.cluster.vq.whiten)),
]

EXTRA = [
    Case("xpx.at.set", V, lambda x, c: xpx.at(x * 1)[1:3].set(0.5)),
    Case("xpx.at.set(x)", V, lambda x, c: xpx.at(c(Y))[1:3].set(x[:2])),
    Case("xpx.at.add", V, lambda x, c: xpx.at(x * 1)[1:3].add(x[:2])),
    Case("xpx.at.subtract", V, lambda x, c: xpx.at(x * 1)[:3].subtract(x[3:])),
    Case("xpx.at.multiply", V, lambda x, c: xpx.at(x * 1)[0].multiply(3.0)),
    Case("xpx.at.divide", V, lambda x, c: xpx.at(x * 1)[:3].divide(0.7)),
    Case("xpx.at.power", P, lambda x, c: xpx.at(x * 1)[0].power(3.0)),
    Case("xpx.at.min", V, lambda x, c: xpx.at(x * 1)[:3].min(0.7)),
    Case("xpx.at.max", V, lambda x, c: xpx.at(x * 1)[0].max(0.7)),
    Case("xpx.at(mask).set", V, lambda x, c: xpx.at(x * 1)[x > 0].set(0.0)),
    Case(
        "xpx.apply_where",
        V,
        lambda x, c: xpx.apply_where(x > 0, x, lambda a: xp_of(a).log(a), fill_value=0.0),
    ),
    Case(
        "xpx.apply_where(two)",
        V,
        lambda x, c: xpx.apply_where(x > 0, x, lambda a: xp_of(a).log(a), _cube),
    ),
    Case("xpx.atleast_nd", V, lambda x, c: xpx.atleast_nd(x, ndim=3)),
    Case("xpx.cov", M, of_one(xpx.cov)),
    Case("xpx.create_diagonal", V, of_one(xpx.create_diagonal)),
    Case("xpx.expand_dims", V, lambda x, c: xpx.expand_dims(x, axis=(0, 1))),
    Case("xpx.kron", V, of_two(xpx.kron, Y)),
    Case("xpx.nan_to_num", V, of_one(xpx.nan_to_num)),
    Case("xpx.pad", V, lambda x, c: xpx.pad(x, 2)),
    Case("xpx.sinc", V, of_one(xpx.sinc)),
    Case("xpx.partition", V, lambda x, c: xpx.partition(x, 2)),
]

SKLEARN = [
    *[
        Case(f"sklearn.{name}", M, dispatched(getattr(preprocessing, name)))
        for name in ["StandardScaler", "MinMaxScaler", "MaxAbsScaler", "Normalizer"]
    ],
    Case("sklearn.Normalizer(l1)", M, dispatched(lambda: preprocessing.Normalizer(norm="l1"))),
    Case("sklearn.Normalizer(max)", M, dispatched(lambda: preprocessing.Normalizer(norm="max"))),
    Case("sklearn.KernelCenterer", S, dispatched(preprocessing.KernelCenterer)),
    Case("sklearn.PolynomialFeatures", M, dispatched(lambda: preprocessing.PolynomialFeatures(2))),
    Case("sklearn.PCA", M, dispatched(lambda: decomposition.PCA(2, svd_solver="full"))),
    Case(
        "sklearn.PCA(covariance_eigh)",
        M,
        dispatched(lambda: decomposition.PCA(2, svd_solver="covariance_eigh")),
    ),
    Case(
        "sklearn.PCA(whiten)",
        M,
        dispatched(lambda: decomposition.PCA(2, svd_solver="full", whiten=True)),
    ),
    Case("sklearn.Ridge", M, ridge),
    Case("sklearn.euclidean_distances", M, kernel(pairwise.euclidean_distances)),
    Case("sklearn.cosine_similarity", M, kernel(pairwise.cosine_similarity)),
    Case("sklearn.linear_kernel", M, kernel(pairwise.linear_kernel)),
    Case("sklearn.polynomial_kernel", M, kernel(pairwise.polynomial_kernel)),
    Case("sklearn.rbf_kernel", M, kernel(pairwise.rbf_kernel)),
    Case("sklearn.sigmoid_kernel", M, kernel(pairwise.sigmoid_kernel)),
    Case("sklearn.paired_euclidean", M, kernel(pairwise.paired_euclidean_distances)),
    Case("sklearn.paired_cosine", M, kernel(pairwise.paired_cosine_distances)),
]

XARRAY = [
    Case("xarray.sum", M, lambda x, c: (arrays(x) ** 2).sum("b").data),
    Case("xarray.mean", M, lambda x, c: arrays(x).mean("a").data),
    Case("xarray.var", M, lambda x, c: arrays(x).var("a").data),
    Case("xarray.std", M, lambda x, c: arrays(x).std("a").data),
    Case("xarray.cumsum", M, lambda x, c: arrays(x).cumsum("a").data),
    Case("xarray.isel", M, lambda x, c: arrays(x).isel(a=1).data),
    Case("xarray.transpose", M, lambda x, c: arrays(x).transpose().data),
    Case("xarray.concat", M, lambda x, c: xarray.concat([arrays(x)] * 2, dim="a").data),
    Case("xarray.where", M, lambda x, c: xarray.where(arrays(x) > 0, arrays(x), 0.0).data),
]

CASES = [*STATS, *SPECIAL, *CALCULUS, *SIGNAL, *SPATIAL, *EXTRA, *SKLEARN, *XARRAY]


def weights_of(shape: tuple[int, ...]) -> Any:
    """Fixed weights, so that each element of a result counts differently."""
    return np.cos(np.arange(int(np.prod(shape))) + 1.0).reshape(shape)


def on_numpy(case: Case, x: Any) -> float:
    """The weighted sum of a result, with NumPy's arrays."""
    y = np.asarray(case.call(x.copy(), np.array), dtype=float)  # copies: some calls write
    return float((y * weights_of(y.shape)).sum())


def differences(case: Case) -> Any:
    """The gradient of the weighted sum by central differences of fourth order, on NumPy."""
    gradient, step = np.zeros_like(case.x), 1e-3
    for place in np.ndindex(case.x.shape):
        for distance, weight in ((1, 8.0), (2, -1.0), (-1, -8.0), (-2, 1.0)):
            moved = case.x.copy()
            moved[place] += distance * step
            gradient[place] += weight * on_numpy(case, moved)
    return gradient / (12 * step)
