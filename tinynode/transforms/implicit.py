"""Implicit functions: gradients of a solution, by the implicit function theorem.

Requirement: a solution x of F(x, theta) = 0 has a gradient, for any code of the solver. Backward
needs the equation and the solution, and none of the solver's steps:

    A = dF/dx,  B = dF/dtheta, at the solution:   A dx + B dtheta = 0
    dL/dtheta = -B^T u,  with A^T u = dL/dx

``u`` solves an equation too: H(u) = A^T u - dL/dx = 0. So for derivatives of derivatives, u is an
implicit function itself, of x, theta and dL/dx.

Source: Blondel et al., Efficient and Modular Implicit Differentiation, 2022; Bai, Kolter, Koltun,
Deep Equilibrium Models, 2019.

    def optimality(x, theta):                # zero at the solution
        return x * x - theta

    def solver(theta):                       # any code
        return np.sqrt(theta.array)

    root = tn.custom_root(optimality, solver)
    tn.functions.sum(root(theta)).backward() # theta.grad = 1 / (2 x)
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, Self, overload

from tinynode.configuration import config, force_backprop_mode, no_backprop_mode
from tinynode.core.backprop import grad
from tinynode.core.conversion import asarray
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.hooks import is_recording_net, tell_detached, thread_state
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Arrays, Device, current_device, is_floating
from tinynode.errors import ConvergenceError, OperandError, VmapError, describe
from tinynode.functions import astype, identity, reshape
from tinynode.net.recorder import without_hooks
from tinynode.net.structure import flatten, unflatten
from tinynode.transforms.captures import Captures, cut_inputs, standing_in
from tinynode.transforms.jacobians import jacobian
from tinynode.transforms.linear_solvers import SOLVERS, MatVec, Solve, largest, solve_matrix


class Equation(NamedTuple):
    """An equation, with the ways to solve it and its linearisation.

    Attributes:
        name: the name of the function for messages.
        optimality: ``optimality(x, *args)``, zero at the solution.
        solver: ``solver(*args, **keywords)``, the solution.
        solve: solves linear systems: ``solve(matvec, b)``.
        tolerance: the largest accepted |optimality|, relative to max(1, |x|); None: a default.
        solve_tolerance: the relative residual of an iterative linear solve; None: a default.
    """

    name: str
    optimality: Callable[..., Any]
    solver: Callable[..., Any]
    solve: Solve
    tolerance: float | None
    solve_tolerance: float | None

    def residual(self, x: Variable, args: Sequence[Any]) -> Variable:
        """The value of ``optimality``, checked: a Variable like x."""
        r = self.optimality(x, *args)
        if not isinstance(r, Variable) or r.shape != x.shape or r.dtype != x.dtype:
            label = r.label if isinstance(r, Variable) else describe(r)
            raise OperandError(
                f"{self.name}: the solution is {x.label}, so the equation must give a Variable "
                f"of this shape and dtype; it gave {label}. One equation for each unknown."
            )
        return r

    def vjp(self, r: Variable, x: Variable) -> MatVec:
        """The product of A^T and a vector, where A = dr/dx and x is a leaf."""

        def product(v: Variable) -> Variable:
            (gx,) = grad([r], [x], [v])
            if gx is None:
                raise ConvergenceError(_not_connected(self.name))
            return gx

        return product

    def linear_solution(self, r: Variable, x: Variable, g: Variable) -> Variable:
        """The solution u of A^T u = g, checked, without a graph."""
        matvec = self.vjp(r, x)
        tolerance = self.solve_tolerance or eps(g) ** (2 / 3)
        with no_backprop_mode():
            try:
                u = self.solve(matvec, g, tolerance)
            except ConvergenceError as error:
                raise ConvergenceError(f"{self.name}, backward: {error}{_SINGULAR}") from error
            rest, size = largest(matvec(u) - g), largest(g)
        if not rest <= max(1e3 * tolerance, eps(g) ** 0.5) * size:
            raise ConvergenceError(
                f"{self.name}, backward: A^T u = g is not solved, for A the Jacobian of the "
                f"equation: |A^T u - g| = {rest:.3g}, |g| = {size:.3g}.{_SINGULAR}"
            )
        return u

    def solution(
        self, device: Device, dtype: Any, args: Sequence[Any], keywords: dict[str, Any]
    ) -> Variable:
        """The solver's result, as a Variable without a graph. No hook sees the solver.

        Python numbers get the dtype.
        """
        with without_hooks(), no_backprop_mode():
            found = self.solver(*args, **keywords)
            own = dtype if not hasattr(found, "dtype") else None
            x = found if isinstance(found, Variable) else asarray(found, own, device)
        if not is_floating(x.raw):
            raise OperandError(
                f"{self.name}: the solver must give a floating array, it gave {x.label}."
            )
        return wrap_array(x.raw, x.device, False)

    def check(self, r: Variable, x: Variable) -> None:
        """Refuse a residual of NaN, and warn of a large residual."""
        error = largest(r)
        limit = (self.tolerance or eps(x) ** (1 / 3)) * max(1.0, largest(x))
        if not error < float("inf"):
            raise ConvergenceError(
                f"{self.name}: the residual at the solver's result is {error}: the solver "
                "diverged, or the equation is not defined there."
            )
        if error > limit:
            warnings.warn(
                f"{self.name}: the solver's result is no solution: the largest residual is "
                f"{error:.3g}, the limit {limit:.3g}. The gradient is that of a solution. Let the "
                "solver run longer, or set tolerance.",
                RuntimeWarning,
                stacklevel=2,
            )


P = ParamSpec("P")
_SINGULAR = (
    " At a singular Jacobian, such as at a double root, the solution has no gradient: move away "
    "from this point, or change the equation."
)


def _not_connected(name: str) -> str:
    return (
        f"{name}: the value of the equation has no recorded connection to the solution x, so the "
        "Jacobian is zero. If the equation is a gradient by tn.grad, compute the gradient with "
        "enable_double_backprop=True."
    )


def eps(x: Variable) -> float:
    """The distance of 1 and the next number of x's dtype."""
    return float(x.xp.finfo(x.dtype).eps)


class ImplicitCall:
    """The constants of an ``ImplicitRoot``, compared by identity.

    Attributes:
        equation: the equation.
        treedef: the structure of the arguments, with slots for the Variables.
        captured: the other Variables of the equation: those of the closure.
        device: the device of all Variables.
    """

    def __init__(self, equation: Equation, variables: Sequence[Variable], treedef: Any) -> None:
        self.equation = equation
        self.treedef = treedef
        self.captured: tuple[Variable, ...] = ()
        self.device = variables[0].device if variables else current_device()

    def __repr__(self) -> str:
        return self.equation.name

    def split(self, values: Sequence[Variable]) -> tuple[Any, dict[str, Any], Sequence[Variable]]:
        """The arguments, the keyword arguments, and the values of the captured Variables."""
        size = len(values) - len(self.captured)
        args, keywords = unflatten(self.treedef, values[:size])
        return args, keywords, values[size:]

    def solution(self, values: Sequence[Variable]) -> tuple[Variable, list[Variable]]:
        """The solver's result, checked; and the Variables captured by the equation."""
        plain = [wrap_array(v.raw, v.device, False) for v in values]
        args, keywords, captured = self.split(plain)
        dtype = next((v.dtype for v in values if is_floating(v.raw)), None)
        with standing_in(self.captured, captured):
            x = self.equation.solution(self.device, dtype, args, keywords)
            if self.equation.tolerance == float("inf"):
                return x, []
            leaves = [wrap_array(v.raw, v.device, True) for v in (x, *plain)]
            own, _, _ = self.split(leaves[1:])
            with _OwnCaptures(leaves) as captures, force_backprop_mode():
                r = self.equation.residual(leaves[0], own)
        with without_hooks():
            self.equation.check(r, x)
        return x, captures.found()


class ImplicitRoot(FunctionNode):
    """x with F(x, theta) = 0, from a solver.

    theta: Variables of any shape -> x: (s).   dL/dtheta = -(dF/dtheta)^T u,
    u: (s), the solution of (dF/dx)^T u = dL/dx

    The inputs are the Variables in the arguments, then the captured Variables. Backward evaluates
    F once more, on the inputs.
    """

    _found: Variable | None = None

    def __init__(self, call: ImplicitCall) -> None:
        self.call = call

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs(tuple(range(len(inputs))))
        self.retain_outputs((0,))
        x, self._found = self._found, None
        if x is None:  # a net runs: the recorded values are of another run
            values = [wrap_array(array, self.call.device, False) for array in inputs]
            x, _ = self.call.solution(values)
        return (x.raw,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gx,) = grad_outputs
        (x,) = self.get_retained_outputs()
        values, record = self.get_retained_inputs(), config.enable_backprop
        inner_x = _cut(x, record)
        count = len(values) - len(self.call.captured)
        inner = cut_inputs(values, count, record, _cut)
        args, _, captured = self.call.split(inner)
        with standing_in(self.call.captured, captured), force_backprop_mode():
            r = self.call.equation.residual(inner_x, args)
            if record or is_recording_net():  # each run of a net solves anew
                u = adjoint(self.call, inner_x, gx, args, captured)
            else:
                u = self.call.equation.linear_solution(r, inner_x, gx)
            targets = [inner[i] for i in target_input_indexes]
            return tuple(grad([r], targets, [-u], enable_double_backprop=record))


def adjoint(
    call: ImplicitCall, x: Variable, gx: Any, args: Sequence[Any], captured: Sequence[Variable]
) -> Variable:
    """The solution u of A^T u = gx, as an implicit function of x, gx, args and ``captured``."""
    equation = call.equation

    def transposed(u: Variable, x: Variable, gx: Variable, *args: Any) -> Variable:
        """H(u) = A^T u - gx."""
        x = x if x.requires_grad else _cut(x, False)
        (product,) = grad([equation.residual(x, args)], [x], [u], enable_double_backprop=True)
        if product is None:
            raise ConvergenceError(_not_connected(equation.name))
        return product - gx

    def solver(x: Variable, gx: Variable, *args: Any) -> Variable:
        x = wrap_array(x.raw, x.device, True)
        with force_backprop_mode():
            r = equation.residual(x, args)
        return equation.linear_solution(r, x, gx)

    own = equation._replace(optimality=transposed, solver=solver, tolerance=float("inf"))
    variables, treedef = flatten(((x, gx, *args), {}), equation.name)
    inner = ImplicitCall(own, variables, treedef)
    inner.captured = call.captured
    _refuse_examples(equation.name, (*variables, *captured))
    return ImplicitRoot(inner).apply((*variables, *captured))[0]


def _cut(x: Variable, record: bool) -> Variable:
    """A Variable with the values of x where a backward pass ends: a copy, or a leaf."""
    if record and x.requires_grad:
        return identity(x)
    leaf = wrap_array(x.raw, x.device, record is False)
    tell_detached(x, leaf)
    return leaf


class _OwnCaptures(Captures):
    """The captured Variables, while no other hook sees the functions."""

    def __enter__(self) -> Self:
        self.hidden, thread_state.hooks = thread_state.hooks, {self.name: self}
        return self

    def __exit__(self, *error: Any) -> None:
        thread_state.hooks = self.hidden

    def value_read(self, what: str) -> None:
        for hook in self.hidden.values():  # a recorder refuses the equation then
            hook.value_read(what)


@overload
def custom_root(
    optimality: Callable[..., Any],
    solver: Callable[P, Any],
    *,
    solve: str | Solve = "dense",
    tolerance: float | None = None,
    solve_tolerance: float | None = None,
) -> Callable[P, Variable]: ...
@overload
def custom_root(
    optimality: Callable[..., Any],
    solver: None = None,
    *,
    solve: str | Solve = "dense",
    tolerance: float | None = None,
    solve_tolerance: float | None = None,
) -> Callable[[Callable[P, Any]], Callable[P, Variable]]: ...
def custom_root(
    optimality: Callable[..., Any],
    solver: Callable[..., Any] | None = None,
    *,
    solve: str | Solve = "dense",
    tolerance: float | None = None,
    solve_tolerance: float | None = None,
) -> Callable[..., Any]:
    """A function that gives a solver's result x, with the gradient of the root of an equation.

    F(x, theta) = 0:   theta: Variables, ... -> x: (s).
    dL/dtheta = -(dF/dtheta)^T u, with (dF/dx)^T u = dL/dx

        root = tn.custom_root(optimality, solver)
        x = root(theta)

    The result has ``solver``'s arguments: Variables, arrays, and nested tuples, lists or dicts.
    Keyword arguments go to ``solver`` alone, such as a first guess. Variables in the closure of
    ``optimality``, such as the weights of a module, get a gradient too. Gradients of every order
    exist. No hook sees the steps of the solver.

    Under ``tn.compile`` the solver runs in each call, and may read the values of the arguments.
    The solver may use a Variable of the closure only if ``optimality`` uses the same Variable.

    A recorded backward, for a gradient of a gradient, borrows the Variables of the closure for a
    moment. Other threads must not use these Variables then.

    Args:
        optimality: ``optimality(x, *args)`` gives a Variable of the shape and dtype of x, zero at
            the solution, by differentiable functions. ``optimality`` may compute a gradient, by
            ``tn.gradient`` or ``tn.grad(..., enable_double_backprop=True)``.
        solver: ``solver(*args, **keywords)`` gives the solution: a Variable or an array. The
            arguments are Variables without a graph; ``theta.array`` is the array. Without
            ``solver``, the result is a decorator of solvers.
        solve: the solver of the linear system of backward. ``"dense"`` computes the whole
            Jacobian, by a backward pass for each element of x. ``"cg"`` takes some passes, for a
            symmetric positive definite Jacobian, as at a minimum. ``"gmres"`` takes some passes
            for any Jacobian. A function ``solve(matvec, b, tolerance)`` gives v with
            ``matvec(v) = b``.
        tolerance: the largest accepted residual, relative to max(1, |x|). By default the cube root
            of the dtype's precision: 6e-6 for float64, 5e-3 for float32. A larger residual is a
            RuntimeWarning.
        solve_tolerance: the relative residual of the linear system; by default the precision to
            the power 2/3: 4e-11 for float64, 2e-5 for float32.

    Raises:
        OperandError: an argument is no function, or ``solve`` is unknown. When called: the value
            of ``optimality`` has another shape or dtype than x, or the solution is not floating.
        ConvergenceError: when called: the residual is NaN or infinite. In backward: the Jacobian
            is singular, or the linear solver did not converge.
    """
    if solver is None:
        return functools.partial(
            custom_root,
            optimality,
            solve=solve,
            tolerance=tolerance,
            solve_tolerance=solve_tolerance,
        )
    return _implicit("custom_root", optimality, solver, solve, tolerance, solve_tolerance)


@overload
def custom_fixed_point(
    fixed_point: Callable[..., Any],
    solver: Callable[P, Any],
    *,
    solve: str | Solve = "dense",
    tolerance: float | None = None,
    solve_tolerance: float | None = None,
) -> Callable[P, Variable]: ...
@overload
def custom_fixed_point(
    fixed_point: Callable[..., Any],
    solver: None = None,
    *,
    solve: str | Solve = "dense",
    tolerance: float | None = None,
    solve_tolerance: float | None = None,
) -> Callable[[Callable[P, Any]], Callable[P, Variable]]: ...
def custom_fixed_point(
    fixed_point: Callable[..., Any],
    solver: Callable[..., Any] | None = None,
    *,
    solve: str | Solve = "dense",
    tolerance: float | None = None,
    solve_tolerance: float | None = None,
) -> Callable[..., Any]:
    """A function that gives a solver's result x, with the gradient of a fixed point.

    x = f(x, theta):   theta: Variables, ... -> x: (s).
    dL/dtheta = (df/dtheta)^T u, with u = dL/dx + (df/dx)^T u

    This is ``custom_root`` of f(x, theta) - x, negated: the Jacobian is 1 - df/dx.

    Args:
        fixed_point: ``fixed_point(x, *args)`` gives a Variable of the shape and dtype of x.
        solver: as for ``custom_root``, and the other arguments too.

    Raises:
        OperandError: as for ``custom_root``.
        ConvergenceError: as for ``custom_root``.
    """
    if solver is None:
        return functools.partial(
            custom_fixed_point,
            fixed_point,
            solve=solve,
            tolerance=tolerance,
            solve_tolerance=solve_tolerance,
        )
    _check_functions("custom_fixed_point", fixed_point, solver)

    def difference(x: Variable, *args: Any) -> Any:
        y = fixed_point(x, *args)
        if isinstance(y, Variable) and y.shape == x.shape and y.dtype == x.dtype:
            return x - y
        return y  # ``residual`` tells the user's value

    title = "custom_fixed_point"
    return _implicit(title, difference, solver, solve, tolerance, solve_tolerance)


def _implicit(
    name: str,
    optimality: Callable[..., Any],
    solver: Callable[..., Any],
    solve: Any,
    tolerance: float | None,
    solve_tolerance: float | None,
) -> Callable[..., Any]:
    _check_functions(name, optimality, solver)
    if not callable(solve) and solve not in SOLVERS:
        raise OperandError(
            f"{name}: solve must be one of {sorted(SOLVERS)} or a function, got {describe(solve)}."
        )
    chosen = solve if callable(solve) else SOLVERS[solve]
    title = f"{name}({getattr(solver, '__name__', type(solver).__name__)})"
    equation = Equation(title, optimality, solver, chosen, tolerance, solve_tolerance)

    @functools.wraps(solver)
    def implicit(*args: Any, **keywords: Any) -> Variable:
        variables, treedef = flatten((args, keywords), title)
        _refuse_examples(title, variables)
        call = ImplicitCall(equation, variables, treedef)
        x, captured = call.solution(variables)
        call.captured = tuple(captured)
        node = ImplicitRoot(call)
        node._found = x
        return node.apply((*variables, *captured))[0]

    return implicit


def _refuse_examples(title: str, variables: Sequence[Variable]) -> None:
    if any("batched" in v.device.backend.capabilities for v in variables):
        raise VmapError(
            f"{title}: a solver needs values, and inside of vmap each example has another. "
            "Write the equation for all examples at once, or call it in a loop."
        )


def _check_functions(name: str, equation: Any, solver: Any) -> None:
    for title, given in (("the equation", equation), ("solver", solver)):
        if not callable(given):
            raise OperandError(f"{name}: {title} must be a function, got {describe(given)}.")


def newton(
    optimality: Callable[..., Any], x0: Any, *args: Any, steps: int = 50, tolerance: float = 1e-12
) -> Variable:
    """A root of an equation by Newton's method, without a graph.

    F(x, theta) = 0:   x0: (s), theta: ... -> x: (s).   A step: x - (dF/dx)^-1 F(x, theta)

    Use this solver in ``custom_root``:

        def solver(theta):
            return tn.newton(optimality, x0, theta)

    Args:
        optimality: as for ``custom_root``.
        x0: the first guess.
        args: the other arguments of ``optimality``.
        steps: the largest number of steps.
        tolerance: the method ends at a step smaller than this, relative to max(1, |x|). The
            precision of the dtype is the least.

    Raises:
        ConvergenceError: the number of steps was not enough, or a Jacobian is singular.
    """
    x = asarray(x0, requires_grad=False)
    with no_backprop_mode():
        for _ in range(steps):
            r = optimality(x, *args)
            if r.dtype != x.dtype:  # a first guess in Python numbers
                x = astype(x, r.dtype)
                r = optimality(x, *args)
            J = reshape(jacobian(optimality)(x, *args), (r.size, x.size))
            step = solve_matrix("newton", J, r)
            x = x - step
            if largest(step) <= max(tolerance, 4 * eps(x)) * max(1.0, largest(x)):
                return wrap_array(x.raw, x.device, False)
    raise ConvergenceError(
        f"newton: {steps} steps did not converge: the last is {largest(step):.3g} long. Begin "
        "nearer to the root, or raise steps."
    )
