"""Operators with a body, for nets: Newton's method, the root of an equation, a linear system.

Requirement: a compiled function with ``custom_root`` runs as a net, and so do its derivatives. The
loops of solvers are operators, with the equation as a net inside: see ``net/body.py``. The
backward of each operator is the implicit rule, made of the same operators:

    Newton        x0, theta -> x         no gradient
    Root          x, theta -> x          dL/dtheta = -(dF/dtheta)^T u, where A^T u = dL/dx
    LinearSolve   b, p -> u, A(p) u = b  dL/db = w, dL/dp = -d(w . A(p) u)/dp, where A^T w = dL/du

So derivatives of every order are operators, and a program with all of them can be saved.

Source: Blondel et al., Efficient and Modular Implicit Differentiation, 2022.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Annotated, Any

from tinynode.configuration import config, force_backprop_mode, no_backprop_mode
from tinynode.core.backprop import grad
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.hooks import tell_detached
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Arrays, Device, is_floating
from tinynode.errors import (
    ConvergenceError,
    DeviceMixError,
    OperandError,
    VmapError,
    describe,
)
from tinynode.functions import identity, matrix_transpose
from tinynode.functions.attributes import MOST_AXES, Within
from tinynode.functions.checked import checked
from tinynode.net.body import Body
from tinynode.net.recorder import without_hooks
from tinynode.net.registry import register_op
from tinynode.transforms.linear_solvers import (
    SOLVERS,
    MatVec,
    Method,
    Solve,
    blocks,
    eps,
    largest,
    solve_blocks,
    solved,
)
from tinynode.transforms.trees import or_zeros

Batch = Annotated[int, Within(0, MOST_AXES)]
MOST_STEPS = 10**6
Steps = Annotated[int, Within(1, MOST_STEPS)]
Tolerance = Annotated[float, Within(0, float("inf"))]


class _WithBody(FunctionNode):
    """Base of the operators for an equation of all inputs; the first input is the unknown.

    Args:
        body: the equation, as a net of the inputs.
        batch: the number of leading axes of the first input with independent systems.
        device: the device of all inputs.
    """

    needs_values = True
    input_counts = (1, ...)
    output_counts = (1,)
    output_device: Device

    def __init__(self, body: Body, batch: Batch, device: Device) -> None:
        self.body: Body = checked(self, "body", body)
        self.batch: int = checked(self, "batch", batch)
        self.output_device = checked(self, "device", device)

    def _check(self, inputs: Arrays) -> None:
        """Refuse inputs that do not fit the body, which may come from a text."""
        title, device = type(self).__name__, self.output_device
        for number, x in enumerate(inputs):
            if not device.owns(x):
                raise DeviceMixError(
                    f"{title}: input {number} must be an array of {device}, got {describe(x)}. "
                    "Record and save the net on the device where it runs."
                )
        if self.batch > len(inputs[0].shape):
            raise OperandError(
                f"{title}: batch must be at most the number of axes of input 0, got {self.batch} "
                f"and {describe(inputs[0])}. Give a smaller batch."
            )
        if len(inputs) != len(self.body.inputs) or len(self.body.outputs) != 1:
            raise OperandError(
                f"{title}: the body takes {len(self.body.inputs)} inputs and gives "
                f"{len(self.body.outputs)} outputs; the operator needs a body of {len(inputs)} "
                "inputs and 1 output. Compare the text with the docstring."
            )
        if not is_floating(inputs[0]):
            raise OperandError(
                f"{title}: input 0 must be floating, got {describe(inputs[0])}. Convert it with "
                "functions.astype."
            )

    def _like_first(self, y: Any, inputs: Arrays) -> Variable:
        """A value of the body as a Variable; shape and dtype must fit the first input."""
        if y.shape != inputs[0].shape or y.dtype != inputs[0].dtype:
            raise OperandError(
                f"{type(self).__name__}: the body must give a value like input 0, "
                f"{describe(inputs[0])}, got {describe(y)}. One equation for each unknown."
            )
        return self._variable(y)

    def _variable(self, array: object) -> Variable:
        return wrap_array(array, self.output_device, False)


class Loop(_WithBody):
    """Base of the loops: steps from a first guess, until a step is small.

    Args:
        body: the function of (x, theta ...).
        batch: the number of leading axes of x with independent systems.
        steps: the largest number of steps.
        tolerance: the method ends at a smaller step, relative to max(1, |x|).
        device: the device of all inputs.

    Attributes:
        title: the name of the public function.
        advice: a sentence for a loop without a small step.
    """

    title = ""
    advice = ""

    def __init__(
        self, body: Body, batch: Batch, steps: Steps, tolerance: Tolerance, device: Device
    ) -> None:
        super().__init__(body, batch, device)
        self.steps: int = checked(self, "steps", steps)
        self.tolerance: float = checked(self, "tolerance", tolerance)

    @staticmethod
    def step(f: MatVec, x: Variable, batch: int) -> tuple[Variable, Variable]:
        """The next x, and the step, for a function f of x alone."""
        raise NotImplementedError

    def forward(self, inputs: Arrays) -> Arrays:
        self._check(inputs)
        x, rest = inputs[0], inputs[1:]
        if 0 in x.shape:
            return (x,)
        with without_hooks():
            examples = [self._variable(array) for array in inputs]
            step = self.body.derived(f"{self.title}_step_{self.batch}", examples, self._step)
            for _ in range(self.steps):
                try:
                    x, change = step.run((x, *rest), self.output_device)
                except ValueError as error:  # the array library's LinAlgError
                    raise ConvergenceError(
                        f"{self.title}: a step of {x.size} unknowns failed: {error}. Begin at "
                        "another point, where the Jacobian is not singular."
                    ) from error
                if is_small(change, x, self.tolerance):
                    return (x,)
        raise self.not_converged(self.steps, change)

    def _step(self, x: Variable, *rest: Variable) -> tuple[Variable, Variable]:
        return self.step(lambda x: self.body.apply((x, *rest))[0], x, self.batch)

    @classmethod
    def not_converged(cls, steps: int, change: Any) -> ConvergenceError:
        """The error after the last step."""
        return ConvergenceError(
            f"{cls.title}: {steps} steps did not converge: the last is {largest(change):.3g} "
            f"long. {cls.advice}"
        )


def is_small(change: Any, x: Any, tolerance: float) -> bool:
    """True for a step that is small beside x."""
    return largest(change) <= tolerance * max(1.0, largest(x))


@register_op()
class Newton(Loop):
    """x with F(x, theta) = 0, by Newton's method from a first guess.

    x0: (s), theta: ... -> x: (s).   A step: x - (dF/dx)^-1 F(x, theta). No gradient.

    Raises:
        ConvergenceError: the number of steps was not enough, or a Jacobian is singular.
    """

    title = "newton"
    advice = "Begin nearer to the root, or raise steps."

    @staticmethod
    def step(f: MatVec, x: Variable, batch: int) -> tuple[Variable, Variable]:
        leaf = cut(x, False)
        with force_backprop_mode():
            r = f(leaf)
        change = solve_blocks("newton", jacobians(r, leaf, batch), r)
        return x - change, change


@register_op()
class FixedPoint(Loop):
    """x with x = f(x, theta), by steps from a first guess.

    x0: (s), theta: ... -> x: (s).   A step: f(x, theta). No gradient.

    Raises:
        ConvergenceError: the number of steps was not enough.
    """

    title = "fixed_point"
    advice = "Begin nearer to the solution, raise steps, or use tn.newton for f(x) - x."

    @staticmethod
    def step(f: MatVec, x: Variable, batch: int) -> tuple[Variable, Variable]:
        y = f(x)
        return y, y - x


class _WithSystem(_WithBody):
    """Base of the operators with a linear system in backward.

    Args:
        body: as for ``_WithBody``.
        batch: likewise.
        solve: the solver: ``"cg"``, ``"dense"`` or ``"gmres"``.
        title: the name of the function for messages.
        device: the device of all inputs.
    """

    def __init__(
        self, body: Body, batch: Batch, solve: Method, title: str, device: Device
    ) -> None:
        super().__init__(body, batch, device)
        self.solve: Method = checked(self, "solve", solve)
        self.title: str = checked(self, "title", title)

    def solution(self, body: Body, inputs: Sequence[Variable], tolerance: float) -> Variable:
        """The solution of the system of a body, by the same solver, as an operator."""
        node = LinearSolve(body, self.batch, self.solve, tolerance, self.title, self.output_device)
        return node.apply(tuple(inputs))[0]


@register_op()
class Root(_WithSystem):
    """x, a solution of F(x, theta) = 0, with the gradient of the solution.

    x: (s), theta: ... -> x: (s).   dL/dtheta = -(dF/dtheta)^T u,
    u: (s), the solution of (dF/dx)^T u = dL/dx

    Args:
        body: F, of (x, theta ...).
        batch: the number of leading axes of x with independent systems.
        solve: the solver of the linear system of backward.
        tolerance: the largest accepted residual, relative to max(1, |x|).
        solve_tolerance: the relative residual of the linear system.
        title: the name of the function for messages.
        device: the device of all inputs.
    """

    def __init__(
        self,
        body: Body,
        batch: Batch,
        solve: Method,
        tolerance: Tolerance,
        solve_tolerance: Tolerance,
        title: str,
        device: Device,
    ) -> None:
        super().__init__(body, batch, solve, title, device)
        self.tolerance: float = checked(self, "tolerance", tolerance)
        self.solve_tolerance: float = checked(self, "solve_tolerance", solve_tolerance)

    def forward(self, inputs: Arrays) -> Arrays:
        self._check(inputs)
        self.retain_inputs(range(len(inputs)))
        self.retain_outputs((0,))
        with without_hooks():
            (r,) = self.body.run(inputs, self.output_device)
            x, residual = self._variable(inputs[0]), self._like_first(r, inputs)
            check_root(self.title, residual, x, self.tolerance)
        return inputs[:1]

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gx,) = grad_outputs
        (x,) = self.get_retained_outputs()
        values = (x, *self.get_retained_inputs()[1:])
        refuse_examples(self.title, (gx, *values))
        product = self.body.derived("transposed_jacobian", [gx, *values], self._product)
        u = self.solution(product, (gx, *values), self.solve_tolerance)
        return _minus_pullback(self.body, values, target_input_indexes, u, None)

    def _product(self, u: Variable, x: Variable, *theta: Variable) -> Variable:
        """(dF/dx)^T u."""
        (r,) = self.body.apply((x, *theta))
        (found,) = grad([r], [x], [u], enable_double_backprop=True)
        if found is None:
            raise ConvergenceError(not_connected(self.title))
        return found


@register_op()
class LinearSolve(_WithSystem):
    """u with A(p) u = b, for a linear function of u given by a net.

    b: (s), p: ... -> u: (s).   dL/db = w with A^T w = dL/du: (s),   dL/dp = -d(w . A(p) u)/dp

    Args:
        body: A u, of (u, p ...).
        batch: the number of leading axes of b with independent systems.
        solve: the solver: ``"cg"``, ``"dense"`` or ``"gmres"``.
        tolerance: the relative residual.
        title: the name of the function for messages.
        device: the device of all inputs.

    Raises:
        ConvergenceError: A is singular, or the solver did not converge.
    """

    def __init__(
        self,
        body: Body,
        batch: Batch,
        solve: Method,
        tolerance: Tolerance,
        title: str,
        device: Device,
    ) -> None:
        super().__init__(body, batch, solve, title, device)
        self.tolerance: float = checked(self, "tolerance", tolerance)

    def forward(self, inputs: Arrays) -> Arrays:
        self._check(inputs)
        self.retain_inputs(range(len(inputs)))
        self.retain_outputs((0,))
        b = self._variable(inputs[0])
        with without_hooks(), no_backprop_mode():
            solve = self._dense(inputs) if self.solve == "dense" else SOLVERS[self.solve]
            u = solved(self.title, solve, self._matvec(inputs), b, self.tolerance)
        return (u.raw,)

    def _matvec(self, inputs: Arrays) -> MatVec:
        """The product A v, with the work on the parameters done once."""
        device, parameters = self.output_device, inputs[1:]
        fixed, rest = self.body.split(1)
        others = (*parameters, *fixed.run(parameters, device))

        def product(v: Variable) -> Variable:
            return self._like_first(rest.run((v.raw, *others), device)[0], inputs)

        return product

    def _dense(self, inputs: Arrays) -> Solve:
        """The solver by the whole matrix, computed by a net."""

        def solve(matvec: MatVec, b: Variable, tolerance: float) -> Variable:
            if not b.size:
                return b
            key = f"matrices_{self.batch}"
            matrices = self.body.derived(key, [*map(self._variable, inputs)], self._matrices)
            (found,) = matrices.run(inputs, self.output_device)
            return solve_blocks("dense", self._variable(found), b)

        return solve

    def _matrices(self, b: Variable, *parameters: Variable) -> Variable:
        """The matrix A of each system: (systems, n, n)."""
        return blocks(lambda v: self.body.apply((v, *parameters))[0], b, self.batch)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gu,) = grad_outputs
        (u,) = self.get_retained_outputs()
        _, *parameters = self.get_retained_inputs()
        values = (u, *parameters)
        refuse_examples(self.title, (gu, *values))
        transposed = self.body.derived(
            "transposed", [gu, *parameters], self._transposed, twice_is_self=True
        )
        w = self.solution(transposed, (gu, *parameters), self.tolerance)
        return _minus_pullback(self.body, values, target_input_indexes, w, w)

    def _transposed(self, w: Variable, *parameters: Variable) -> Variable:
        """A^T w; A is linear, so the point does not matter."""
        v = cut(w, False)
        (y,) = self.body.apply((v, *parameters))
        (found,) = grad([y], [v], [w], enable_double_backprop=True)
        assert found is not None
        return found


def _minus_pullback(
    body: Body, values: Sequence[Variable], targets: Indexes, u: Variable, first: Variable | None
) -> tuple[Variable | None, ...]:
    """-u J for each target, where J is the derivative of a body; ``first`` for input 0."""
    record = config.enable_backprop
    inner = [cut(x, record) for x in values]
    with force_backprop_mode():
        (y,) = body.apply(inner)
        sources = [inner[i] for i in targets if i > 0]
        found = iter(grad([y], sources, [-u], enable_double_backprop=record))
    return tuple([next(found) if i > 0 else first for i in targets])


def cut(x: Variable, record: bool) -> Variable:
    """A Variable with the values of x where a backward pass ends: a copy, or a leaf."""
    if record and x.requires_grad:
        return identity(x)
    leaf = wrap_array(x.raw, x.device, record is False)
    tell_detached(x, leaf)
    return leaf


def jacobians(r: Variable, x: Variable, batch: int) -> Variable:
    """dr/dx of each system: (systems, n, n), for r and x: (batch ..., s) with n elements in s."""

    def transposed(u: Variable) -> Variable:
        (gx,) = grad([r], [x], [u])
        return or_zeros(gx, x)

    return matrix_transpose(blocks(transposed, x, batch))


# --- checks --------------------------------------------------------------------------------------


def refuse_examples(title: str, variables: Sequence[Variable]) -> None:
    """Refuse Variables of an example of vmap."""
    if any("batched" in v.device.backend.capabilities for v in variables):
        raise VmapError(
            f"{title}: a Variable of an example of vmap is no argument, and solvers read values. "
            "Give the Variables of an example as arguments. Call a pullback in a loop, without "
            "vmap."
        )


def default_root_tolerance(x: Variable) -> float:
    """The largest accepted residual, by the precision of the dtype."""
    return float(eps(x) ** (1 / 3))


def check_root(name: str, r: Variable, x: Variable, tolerance: float | None) -> None:
    """Refuse a residual of NaN, and warn of a large residual."""
    error = largest(r)
    limit = (tolerance or default_root_tolerance(x)) * max(1.0, largest(x))
    if not error < float("inf"):
        raise ConvergenceError(
            f"{name}: the residual at the solver's result is {error}: the solver "
            "diverged, or the equation is not defined there."
        )
    if error > limit:
        warnings.warn(
            f"{name}: the solver's result is no solution: the largest residual is "
            f"{error:.3g}, the limit {limit:.3g}. The gradient is that of a solution. Let the "
            "solver run longer, or set tolerance.",
            RuntimeWarning,
            stacklevel=2,
        )


def not_connected(name: str) -> str:
    """The message about an equation without the unknown."""
    return (
        f"{name}: the value of the equation has no recorded connection to the solution x, so the "
        "Jacobian is zero. If the equation is a gradient by tn.grad, compute the gradient with "
        "enable_double_backprop=True."
    )
