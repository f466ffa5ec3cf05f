"""Bug hunt 24: gradients that are wrong in the second order, and some in the first."""

from tinynode_course.hunts import engine

ENGINE = engine(__file__)

(_FILE,) = ENGINE

BUGS = tuple(
    (what, _FILE, old, new)
    for what, old, new in (
        ("the array of x in the gradient of cube", "(3.0 * x * x)", "(3.0 * x.array * x.array)"),
        ("half of the way to x is cut in cube", "(3.0 * x * x)", "(3.0 * x * x.array)"),
        ("a factor in the gradient of cube", "(3.0 * x * x)", "(2.0 * x * x)"),
        (
            "the gradient of cube does not depend on g any more",
            "g * (3.0 * x * x)",
            "g.array * (3.0 * x * x)",
        ),
        (
            "the graph of the gradient of flip is cut: flip is linear, and still needs a graph",
            "(F.flip(g),)\n\n\nclass CumulativeSum",
            "(tn.Variable(g.xp.flip(g.array)),)\n\n\nclass CumulativeSum",
        ),
        (
            "the gradient of flip is not reversed",
            "return (F.flip(g),)",
            "return (g * 1.0,)",
        ),
        (
            "the graph of the gradient of cumulative_sum is cut",
            "F.flip(F.cumulative_sum(F.flip(g)))",
            "F.flip(F.cumulative_sum(F.flip(tn.Variable(g.array))))",
        ),
        (
            "the gradient of cumulative_sum is summed from the wrong end",
            "F.flip(F.cumulative_sum(F.flip(g)))",
            "F.cumulative_sum(g)",
        ),
        (
            "the gradient of cumulative_sum lies in reverse order",
            "F.flip(F.cumulative_sum(F.flip(g)))",
            "F.cumulative_sum(F.flip(g))",
        ),
        ("the graph of the gradient of softplus is cut at x", "F.exp(-x)", "g.xp.exp(-x.array)"),
        (
            "softplus puts the array of x into a new leaf",
            "F.exp(-x)",
            "F.exp(-tn.Variable(x.array))",
        ),
        ("the sign of x in the gradient of softplus", "F.exp(-x)", "F.exp(x)"),
        (
            "the gradient of softplus does not depend on g any more",
            "g / (1.0 + F.exp(-x))",
            "g.array / (1.0 + F.exp(-x))",
        ),
        ("one gradient of dot is cut at b", "return g * b,", "return g * b.array,"),
        ("one gradient of dot is cut at a", "a * g\n", "a.array * g\n"),
        ("one gradient of dot is cut at g", "a * g\n", "a * g.array\n"),
        (
            "the two gradients of dot are confused",
            "return g * b, a * g",
            "return a * g, g * b",
        ),
        ("exponential is cut at its own output", "(y * g,)", "(y.array * g,)"),
        ("the gradient of exponential is cut at g", "(y * g,)", "(y * g.array,)"),
        (
            "the first order of exponential is right, the second has a factor",
            "(y * g,)",
            "(F.sqrt(y) * y.array**0.5 * g,)",
        ),
    )
)
