"""Hidden checks of exercise 24: other shapes, and mistakes that a sum of all elements hides."""

import numpy as np

from tinynode_course.checks import expect_raises


def check_shapes(work):
    """Functions that change the shape."""
    from mynode.gradient_check import check_double_backward

    rng = np.random.default_rng(0)
    x, gx = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))

    def row_sums(x):
        return work.sum(work.square(x) * x, axis=1)

    check_double_backward(row_sums, x, rng.normal(size=2), gx)
    check_double_backward(work.square, np.array(1.5), np.array(2.0), np.array(-3.0))


def check_exchanged_elements(work):
    """A second order with two elements exchanged has the right sum, and is refused."""
    from mynode.gradient_check import check_double_backward

    class Grad(work.FunctionNode):
        def forward(self, inputs):
            self.retain_inputs((0, 1))
            return (2.0 * inputs[0] * inputs[1],)

        def backward(self, target_input_indexes, grad_outputs):
            x, gy = self.get_retained_inputs()
            (h,) = grad_outputs
            gx = 2.0 * gy * h
            wrong = work.Variable(np.asarray(getattr(gx, "array", gx))[::-1].copy())
            return wrong if isinstance(gx, work.Variable) else wrong.array, 2.0 * x * h

    class Square(work.FunctionNode):
        def forward(self, inputs):
            self.retain_inputs((0,))
            return (inputs[0] ** 2,)

        def backward(self, target_input_indexes, grad_outputs):
            (x,), (gy,) = self.get_retained_inputs(), grad_outputs
            is_recorded = isinstance(gy, work.Variable)
            return Grad().apply((x, gy)) if is_recorded else (2.0 * x * gy,)

    def call():
        data = np.array([1.0, 2.0]), np.array([3.0, 5.0]), np.array([7.0, 11.0])
        check_double_backward(lambda x: Square().apply((x,))[0], *data)

    look = "compare element by element, by np.allclose"
    expect_raises("the check of exchanged elements", AssertionError, call, look)
