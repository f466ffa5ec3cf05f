"""Bug hunt 14: wrong gradients, and some wrong values."""

from tinynode_course.hunts import engine

ENGINE = engine(__file__)

(_FILE,) = ENGINE

BUGS = tuple(
    (what, _FILE, old, new)
    for what, old, new in (
        ("the gradient of tanh is wrong nearly everywhere", "(1 - y * y)", "(1 - y)"),
        ("tanh forgets the gradient that comes from above", "g * (1 - y * y)", "(1 - y * y)"),
        (
            "a gradient that is right for small x only",
            "(1 - y * y)",
            "(1 - y * y + y * y * y * y / 3)",
        ),
        (
            "leaky_relu has the right values; a gradient below 0 is wrong",
            "F.where(x > 0, g, 0.1 * g)",
            "F.where(x > 0, g, 0.0 * g)",
        ),
        ("leaky_relu has a gradient that ignores x", "F.where(x > 0, g, 0.1 * g)", "1.0 * g"),
        (
            "a kink in the wrong place: between 0 and 1",
            "F.where(x > 0, g, 0.1 * g)",
            "F.where(x > 0.5, g, 0.1 * g)",
        ),
        (
            "leaky_relu itself is wrong for negative numbers",
            "where(x > 0, x, 0.1 * x)",
            "where(x > 0, x, 0.2 * x)",
        ),
        ("a gradient that is right when both inputs are equal", "g * b, g * a", "g * a, g * b"),
        ("the second input of product gets no gradient", "g * b, g * a", "g * b, None"),
        ("the sign of one gradient of quotient", "-g * a / (b * b)", "g * a / (b * b)"),
        (
            "a gradient of quotient that is right for denominators of 1 and -1",
            "return g / b,",
            "return g * b,",
        ),
        (
            "a gradient of quotient that is right when a and b are equal",
            "-g * a / (b * b)",
            "-g / b",
        ),
        (
            "a gradient with its axes in another order; shapes can tell",
            "F.permute_dims(g, (1, 2, 0))",
            "F.reshape(g, (g.shape[1], g.shape[2], g.shape[0]))",
        ),
        (
            "a gradient of share that is right as long as g has equal numbers",
            "(g - F.sum(g * x) / total) / total",
            "(g - F.mean(g)) / total",
        ),
        (
            "a gradient of share that is right where the numbers of x add up to 1",
            "(g - F.sum(g * x) / total) / total",
            "(g - F.sum(g * x))",
        ),
        (
            "the gradient of row_mean is a number of times too large",
            "self.columns)) / self.columns",
            "self.columns))",
        ),
        (
            "the gradient of row_mean is right for a square x only",
            "self.columns)) / self.columns",
            "self.columns)) / g.shape[0]",
        ),
        ("the gradient of the bias of affine", "F.sum(g, axis=0)", "F.mean(g, axis=0)"),
        ("the gradient of the weights of affine", "@ x\n", "@ abs(x)\n"),
        ("the gradient of the x of affine", "gx = g @ w", "gx = g @ w * 0.999"),
    )
)
