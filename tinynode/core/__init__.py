"""The graph: Variables, nodes, functions, and the backward pass.

The way of ``y = x * w + b; y.backward()`` leads through five modules, in this order:

| module | content |
|---|---|
| ``variable`` | the object in the hands of the user |
| ``variable_node`` | the part of a variable that the graph holds |
| ``function_node`` | one application of a function |
| ``gradient_table`` | the gradients of one backward pass |
| ``backprop`` | the loop of one backward pass |

The others stand beside the way: ``array_methods`` (operators of Variable), ``conversion`` (values
to Variables), ``dispatch`` (kernel or portable definition), ``hooks`` (events), ``debug`` (the
hook of debug mode), ``paths`` (functions between two ends), ``messages`` (checks, and texts of
errors) and ``function`` (Chainer's old-style functions).
"""
