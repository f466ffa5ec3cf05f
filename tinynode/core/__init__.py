"""The graph: Variables, nodes, functions, and the backward pass.

The way of ``y = x * w + b; y.backward()`` leads through five modules, in this order:

| module | content |
|---|---|
| ``variable`` | the object in the hands of the user |
| ``variable_node`` | the part of a variable that the graph holds |
| ``function_node`` | one application of a function |
| ``gradient_table`` | the gradients of one backward pass |
| ``backprop`` | the loop of one backward pass |

The other modules stand beside the way:

| module | content |
|---|---|
| ``array_methods`` | the base class of Variable: operators, shapes, conversions, text |
| ``conversion`` | values as Variables |
| ``dispatch`` | the kernel of a backend, or else the portable definition |
| ``hooks``, ``debug`` | the events; the hook of debug mode |
| ``origins``, ``not_finite``, ``nan_hints`` | the origin of a NaN, the operands, the guard |
| ``paths`` | the functions between two ends of a graph |
| ``messages`` | checks, and the texts of errors |
| ``function`` | Chainer's old-style functions |
"""
