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
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, Self, overload

from tinynode.configuration import config, force_backprop_mode, no_backprop_mode
from tinynode.core.backprop import grad
from tinynode.core.conversion import asarray
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.hooks import is_recording_net, thread_state
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import (
    Arrays,
    Device,
    below,
    current_device,
    is_floating,
    only_axes_of,
)
from tinynode.errors import ConvergenceError, NetError, OperandError, describe
from tinynode.functions import astype, broadcast_to, reshape
from tinynode.functions.operands import as_integer, as_number
from tinynode.net.body import body_of
from tinynode.net.recorder import without_hooks
from tinynode.net.structure import flatten, unflatten
from tinynode.transforms.captures import Captures, cut_inputs, standing_in
from tinynode.transforms.implicit_operators import (
    MOST_STEPS,
    FixedPoint,
    Loop,
    Newton,
    Root,
    check_root,
    cut,
    default_root_tolerance,
    is_small,
    not_connected,
    refuse_examples,
)
from tinynode.transforms.linear_solvers import (
    SOLVERS,
    MatVec,
    Method,
    Solve,
    default_tolerance,
    dense,
    eps,
    solved,
)
from tinynode.transforms.vmap import vmap
from tinynode.transforms.whole_batches import WholeBatch, whole_batch


class Equation(NamedTuple):
    """An equation, with the ways to solve it and its linearisation.

    Attributes:
        name: the name of the function for messages.
        optimality: ``optimality(x, *args)``, zero at the solution.
        solver: ``solver(*args, **keywords)``, the solution.
        solve: solves linear systems: ``solve(matvec, b)``.
        method: the name of ``solve`` among ``SOLVERS``; None for a function of the user.
        tolerance: the largest accepted |optimality|, relative to max(1, |x|); None: a default.
        solve_tolerance: the relative residual of an iterative linear solve; None: a default.
        batch: the number of leading axes of x with independent systems.
    """

    name: str
    optimality: Callable[..., Any]
    solver: Callable[..., Any]
    solve: Solve
    method: Method | None
    tolerance: float | None
    solve_tolerance: float | None
    batch: int = 0

    def residual(self, x: Variable, args: Sequence[Any]) -> Variable:
        """The value of ``optimality``, checked: a Variable like x."""
        r = self.optimality(x, *args)
        if isinstance(r, Variable) and r.device is not x.device:
            refuse_examples(self.name, [r])
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
                raise ConvergenceError(not_connected(self.name))
            return gx

        return product

    def linear_solution(self, r: Variable, x: Variable, g: Variable) -> Variable:
        """The solution u of A^T u = g, checked, without a graph."""
        tolerance = self.solve_tolerance or default_tolerance(g)
        solve = self.solve
        if self.method == "dense":
            solve = functools.partial(dense, batch=self.batch)
        return solved(self.name, solve, self.vjp(r, x), g, tolerance)

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


P = ParamSpec("P")


class ImplicitCall:
    """The constants of an ``ImplicitRoot``, compared by identity.

    Attributes:
        equation: the equation.
        treedef: the structure of the arguments, with slots for the Variables.
        captured: the other Variables of the equation, from the closure.
        device: the device of all Variables.
        why_not_saved: sentences for the error when a net with the solver is saved.
    """

    why_not_saved = ""

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

    def solver_result(self, values: Sequence[Variable]) -> Variable:
        """The solver's result."""
        plain = [wrap_array(v.raw, v.device, False) for v in values]
        args, keywords, captured = self.split(plain)
        dtype = next((v.dtype for v in values if is_floating(v.raw)), None)
        with standing_in(self.captured, captured):
            return self.equation.solution(self.device, dtype, args, keywords)

    def solution(self, values: Sequence[Variable]) -> tuple[Variable, list[Variable]]:
        """The solver's result, checked; and the Variables captured by the equation."""
        x = self.solver_result(values)
        plain = [wrap_array(v.raw, v.device, False) for v in values]
        _, _, captured = self.split(plain)
        with standing_in(self.captured, captured):
            if self.equation.tolerance == float("inf"):
                return x, []
            leaves = [wrap_array(v.raw, v.device, True) for v in (x, *plain)]
            own, _, _ = self.split(leaves[1:])
            with _OwnCaptures(leaves) as captures, force_backprop_mode():
                r = self.equation.residual(leaves[0], own)
        with without_hooks():
            check_root(self.equation.name, r, x, self.equation.tolerance)
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
        refuse_examples(self.call.equation.name, [gx])
        with only_axes_of(x.device):
            return self._gradients(target_input_indexes, gx, x)

    def _gradients(self, targets: Indexes, gx: Variable, x: Variable) -> Gradients:
        """The gradients of some inputs, from the gradient of the solution x."""
        values, record = self.get_retained_inputs(), config.enable_backprop
        inner_x = cut(x, record)
        count = len(values) - len(self.call.captured)
        inner = cut_inputs(values, count, record, cut)
        args, _, captured = self.call.split(inner)
        with standing_in(self.call.captured, captured), force_backprop_mode():
            r = self.call.equation.residual(inner_x, args)
            if record or is_recording_net():  # each run of a net solves anew
                u = adjoint(self.call, inner_x, gx, args, captured)
            else:
                u = self.call.equation.linear_solution(r, inner_x, gx)
            sources = [inner[i] for i in targets]
            return tuple(grad([r], sources, [-u], enable_double_backprop=record))


def adjoint(
    call: ImplicitCall, x: Variable, gx: Any, args: Sequence[Any], captured: Sequence[Variable]
) -> Variable:
    """The solution u of A^T u = gx, as an implicit function of x, gx, args and ``captured``."""
    equation = call.equation

    def transposed(u: Variable, x: Variable, gx: Variable, *args: Any) -> Variable:
        """H(u) = A^T u - gx."""
        x = x if x.requires_grad else cut(x, False)
        (product,) = grad([equation.residual(x, args)], [x], [u], enable_double_backprop=True)
        if product is None:
            raise ConvergenceError(not_connected(equation.name))
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
    refuse_examples(equation.name, (*variables, *captured))
    return ImplicitRoot(inner).apply((*variables, *captured))[0]


class SolverCall(FunctionNode):
    """x, the result of a solver of any code: a net calls the solver in each run.

    theta: Variables of any shape -> x: (s). No gradient: ``Root`` has the gradient.

    The inputs: as for an ``ImplicitRoot``.
    """

    needs_values = True
    complex_rule = "own"

    def __init__(self, call: ImplicitCall) -> None:
        self.call = call
        self.output_device = call.device

    def forward(self, inputs: Arrays) -> Arrays:
        values = [wrap_array(array, self.call.device, False) for array in inputs]
        return (self.call.solver_result(values).raw,)


def _recorded_root(
    equation: Equation, method: Method, variables: Sequence[Variable], treedef: Any
) -> Variable:
    """The solution while a net is recorded: the operators of the solver, then ``Root``.

    A solver with a look at values is no net: ``SolverCall`` calls the solver in each run.
    """
    call = ImplicitCall(equation, variables, treedef)
    found = _recorded_solver(call, variables)
    x = call.solver_result(variables) if found is None else found
    leaves = [wrap_array(v.raw, v.device, is_floating(v.raw)) for v in (x, *variables)]

    def residual(x: Variable, *values: Variable) -> Variable:
        return equation.residual(x, call.split(values)[0])

    body, captured = body_of(residual, leaves, "equation")
    if found is None:
        call.captured = tuple(captured)
        x = SolverCall(call).apply((*variables, *captured))[0]
    node = Root(
        body,
        equation.batch,
        method,
        equation.tolerance or default_root_tolerance(x),
        equation.solve_tolerance or default_tolerance(x),
        equation.name,
        x.device,
    )
    return node.apply((x, *variables, *captured))[0]


def _recorded_solver(call: ImplicitCall, variables: Sequence[Variable]) -> Variable | None:
    """The solver's result by operators of the recorded net; None for a solver of any code."""

    def solver(*values: Variable) -> Any:
        args, keywords, _ = call.split(values)
        return call.equation.solver(*args, **keywords)

    try:
        body, captured = body_of(solver, variables, "solver")
    except NetError as error:  # a look at values, or random numbers
        call.why_not_saved = _why_not_saved(str(error))
        return None
    if len(body.operators) > LARGEST_SOLVER:
        call.why_not_saved = _why_not_saved(f"the solver has more than {LARGEST_SOLVER} operators")
        return None
    with no_backprop_mode():
        found = body.apply((*variables, *captured))
    is_one = len(found) == 1 and is_floating(found[0].raw)
    return found[0] if is_one else None  # ``Equation.solution`` refuses the result


def _why_not_saved(reason: str) -> str:
    return (
        f" The solver is no net, and runs as it is: {reason.removesuffix('.')}. Write the solver "
        "with functions of Variables alone, such as tn.newton."
    )


LARGEST_SOLVER = 2000
"""The number of operators of a solver in a net, at most. A longer solver runs as Python."""


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
    """A function with a solver's result x, and with the gradient of the root of an equation.

    F(x, theta) = 0:   theta: Variables, ... -> x: (s).
    dL/dtheta = -(dF/dtheta)^T u, with (dF/dx)^T u = dL/dx

        root = tn.custom_root(optimality, solver)
        x = root(theta)

    The result has ``solver``'s arguments: Variables, arrays, and nested tuples, lists or dicts.
    Keyword arguments go to ``solver`` alone, such as a first guess. Variables in the closure of
    ``optimality``, such as the weights of a module, get a gradient too. Gradients of every order
    exist. No hook sees the steps of the solver.

    Under ``tn.compile`` a solver of functions of Variables, such as ``tn.newton``, becomes a part
    of the net. Other solvers run as Python in each call.
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
    """A function with a solver's result x, and with the gradient of a fixed point.

    x = f(x, theta):   theta: Variables, ... -> x: (s).
    dL/dtheta = (df/dtheta)^T u, with u = dL/dx + (df/dx)^T u

    The same as ``custom_root`` of f(x, theta) - x, negated: the Jacobian is 1 - df/dx.

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
    method = None if callable(solve) else solve

    @functools.wraps(solver)
    def implicit(*args: Any, **keywords: Any) -> Variable:
        # made here: a compiled function watches the surroundings of the functions in this closure
        equation = Equation(title, optimality, solver, chosen, method, tolerance, solve_tolerance)
        variables, treedef = flatten((args, keywords), title)
        return _solution(equation, variables, treedef)

    return implicit


def _solution(equation: Equation, variables: Sequence[Variable], treedef: Any) -> Variable:
    """The solution of an equation for some arguments, with a gradient."""
    whole = whole_batch(variables)
    if whole is not None:
        return _solution_of_examples(equation, whole, treedef)
    refuse_examples(equation.name, variables)
    if is_recording_net() and equation.method is not None:
        return _recorded_root(equation, equation.method, variables, treedef)
    call = ImplicitCall(equation, variables, treedef)
    x, captured = call.solution(variables)
    call.captured = tuple(captured)
    node = ImplicitRoot(call)
    node._found = x
    return node.apply((*variables, *captured))[0]


def _solution_of_examples(equation: Equation, whole: WholeBatch, treedef: Any) -> Variable:
    """The solution in each example of vmap: an equation of all examples."""

    def residual(x: Variable, *values: Variable) -> Variable:
        return equation.residual(x, unflatten(treedef, values)[0])

    def solver(*values: Variable) -> Any:
        args, keywords = unflatten(treedef, values)
        return equation.solver(*args, **keywords)

    of_all = equation._replace(
        optimality=vmap(residual), solver=whole.solver(solver), batch=equation.batch + 1
    )

    def solution(*values: Variable) -> Variable:
        return _solution(of_all, *flatten((values, {}), equation.name))

    x = whole.outside(solution, equation.name)
    if not whole.is_recorded:
        return x

    def optimality(x: Variable, found: Variable, *values: Variable) -> Variable:
        return of_all.residual(x, values)

    def solver_of_found(found: Variable, *values: Variable) -> Variable:
        return found

    of_found = of_all._replace(optimality=optimality, solver=solver_of_found)

    def gradient_of(*values: Variable) -> Variable:
        """The solution that is known, as a function of the arguments."""
        return _solution(of_found, *flatten((values, {}), equation.name))

    return whole.recorded(gradient_of, x.detach())


def _check_functions(name: str, equation: Any, solver: Any) -> None:
    for title, given in (("the equation", equation), ("solver", solver)):
        if not callable(given):
            raise OperandError(f"{name}: {title} must be a function, got {describe(given)}.")


def newton(
    optimality: Callable[..., Any], x0: Any, *args: Any, steps: int = 50, tolerance: float = 1e-12
) -> Variable:
    """A root of an equation by Newton's method, without a graph.

    F(x, theta) = 0:   x0: (s), theta: ... -> x: (s).   A step: x - (dF/dx)^-1 F(x, theta)

    A solver for ``custom_root``:

        def solver(theta):
            return tn.newton(optimality, x0, theta)

    Args:
        optimality: as for ``custom_root``.
        x0: the first guess; a number stands for each unknown.
        args: the other arguments of ``optimality``.
        steps: the largest number of steps.
        tolerance: the method ends at a step smaller than this, relative to max(1, |x|). The
            precision of the dtype is the least.

    Raises:
        ConvergenceError: the number of steps was not enough, or a Jacobian is singular.
    """
    return _looped_from(Newton, optimality, x0, args, steps, tolerance)


def fixed_point(
    f: Callable[..., Any], x0: Any, *args: Any, steps: int = 1000, tolerance: float = 1e-12
) -> Variable:
    """A fixed point by repeated calls of a function, without a graph.

    x = f(x, theta):   x0: (s), theta: ... -> x: (s).   A step: f(x, theta)

    A solver for ``custom_fixed_point``:

        def solver(theta):
            return tn.fixed_point(f, x0, theta)

    Args:
        f: as for ``custom_fixed_point``.
        x0: the first guess; a number stands for each unknown.
        args: the other arguments of ``f``.
        steps: the largest number of steps.
        tolerance: as for ``newton``.

    Raises:
        ConvergenceError: the number of steps was not enough.
    """
    return _looped_from(FixedPoint, f, x0, args, steps, tolerance)


def _looped_from(
    loop: type[Loop],
    f: Callable[..., Any],
    x0: Any,
    args: Sequence[Any],
    steps: int,
    tolerance: float,
) -> Variable:
    """The result of a loop with f(x, *args), for arguments with Variables inside."""
    variables, treedef = flatten((args, {}), loop.title)
    x = _first_guess(x0, variables)

    def of_values(x: Variable, *values: Variable) -> Any:
        return f(x, *unflatten(treedef, values)[0])

    return _looped(loop, of_values, x, variables, steps, tolerance)


def _first_guess(x0: Any, values: Sequence[Variable]) -> Variable:
    """The first guess as a Variable; a number or an array lies on the device of the values."""
    if isinstance(x0, Variable) or not values:
        return asarray(x0, requires_grad=False)
    device = values[0].device
    while below(device) is not None:  # inside of vmap
        device = below(device)
    return asarray(x0, device=device, requires_grad=False)


def _looped(
    loop: type[Loop],
    f: Callable[..., Any],
    x: Variable,
    values: Sequence[Variable],
    steps: int,
    tolerance: float,
    batch: int = 0,
) -> Variable:
    """The result of a loop with f(x, *values), from a first guess x."""
    steps, tolerance = _checked_settings(loop.title, steps, tolerance)
    whole = whole_batch((x, *values))
    if whole is not None:

        def of_all(x: Variable, *values: Variable) -> Variable:
            return _looped(loop, vmap(f), x, values, steps, tolerance, batch + 1)

        return whole.outside(of_all, loop.title).detach()
    x = _fitting_guess(loop, f, x, values, batch)
    tolerance = max(tolerance, 4 * eps(x))
    if is_recording_net():
        leaves = [wrap_array(v.raw, v.device, is_floating(v.raw)) for v in (x, *values)]
        body, captured = body_of(f, leaves, "equation")
        with no_backprop_mode():
            node = loop(body, batch, steps, tolerance, x.device)
            return node.apply((x, *values, *captured))[0]
    if not x.size:
        return x
    with no_backprop_mode():
        for _ in range(steps):
            x, change = loop.step(lambda x: f(x, *values), x, batch)
            if is_small(change, x, tolerance):
                return wrap_array(x.raw, x.device, False)
    raise loop.not_converged(steps, change)


def _checked_settings(title: str, steps: Any, tolerance: Any) -> tuple[int, float]:
    """The settings of a loop, checked as in a net."""
    steps = as_integer(title, "steps", steps)
    if not 1 <= steps <= MOST_STEPS:
        raise OperandError(
            f"{title}: steps must be from 1 to {MOST_STEPS}, got {steps}. Give the largest number "
            "of steps that the loop may take."
        )
    tolerance = as_number(title, "tolerance", tolerance)
    if tolerance != tolerance:
        raise OperandError(f"{title}: tolerance is NaN. Give a number, such as 1e-12.")
    return steps, tolerance


def _fitting_guess(
    loop: type[Loop], f: Callable[..., Any], x: Variable, values: Sequence[Variable], batch: int
) -> Variable:
    """The first guess in the dtype of the equation; a number stands for each unknown."""
    with no_backprop_mode():
        r = f(x, *values)
        if isinstance(r, Variable) and r.device is x.device:
            if x.ndim == batch:
                unknowns = (1,) * (r.ndim - batch)
                x = broadcast_to(reshape(x, x.shape + unknowns), r.shape)
            x = x if x.dtype == r.dtype else astype(x, r.dtype)
    if not isinstance(r, Variable) or r.shape != x.shape:
        label = r.label if isinstance(r, Variable) else describe(r)
        raise OperandError(
            f"{loop.title}: the first guess is {x.label}, so the equation must give a Variable of "
            f"this shape; it gave {label}. One equation for each unknown."
        )
    if not is_floating(x.raw):
        raise OperandError(
            f"{loop.title}: the equation must give floating numbers, it gave {r.label}. Convert "
            "the arguments with functions.astype; a complex unknown is two real unknowns."
        )
    return x
