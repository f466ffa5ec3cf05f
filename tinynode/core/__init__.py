"""The kernel: what ``y = x * w + b; y.backward()`` executes.

| module | content |
|---|---|
| ``variable`` | the object in the hands of the user |
| ``operators`` | the operators of Variable |
| ``variable_node`` | the part of a variable that the graph holds |
| ``function_node`` | one application of a function |
| ``dispatch`` | the kernel of a backend, or else the portable definition |
| ``gradient_table`` | the gradients of one backward pass, as Variables or as arrays |
| ``backprop`` | the loop of one backward pass |

The other modules stand beside the way:

| module | content |
|---|---|
| ``array_methods`` | the base class of Variable: shapes, conversions, text |
| ``conversion`` | values as Variables |
| ``array_arguments`` | arrays where functions expect Variables |
| ``hooks`` | the events of hooks |
| ``paths`` | the functions between two ends of a graph |
| ``seeds`` | the checks of the gradients that a pass starts from |
| ``messages`` | the texts of errors |
"""
