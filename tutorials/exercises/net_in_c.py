"""Exercise net_in_c: a small emitter, from lines of formulas to a loop in C.

A line is a text ``name = expression``. The expression reads inputs and names of earlier lines, and
calls functions of C such as ``tanh``. Each name is an array of float64 numbers, all of one length.
No name is written twice, and no name is ``i`` or ``n``.

1. Write ``needed_lines``. Start at the last line: which names does it read?
2. Write ``loop_of``. For ``["a = tanh(x)", "c = a * x"]``, the input x and the output c:

       void loop(const double *restrict x_in, double *restrict c_out, long n) {
           for (long i = 0; i < n; i++) {
               const double x = x_in[i];
               const double a = tanh(x);
               const double c = a * x;
               c_out[i] = c;
           }
       }

   All inputs and all outputs are parameters, in their order. The loop leaves out lines that no
   output needs, and reads no array that no line needs. A name such as ``x@GRAD`` is no name of C:
   write ``x_GRAD``.
3. Write ``bytes_of``. NumPy makes a pass for each needed line: the pass reads each name of the
   expression once, and writes the name of the line. The loop reads inputs and writes outputs, and
   all else stays in registers. A number has 8 bytes.
4. Write ``gradient_lines``: the lines of z = tanh(x * w + b), and of the gradients of x, w and b,
   element by element. ``z@GRAD`` is an input. Call ``tanh`` once.
"""

import re

NAME = re.compile(r"(?<![\w.@])[A-Za-z_][\w@]*\b(?!\()")


def names_in(expression):
    """The names that an expression reads: {"x", "w@GRAD"} for "exp(x) * w@GRAD"."""
    return set(NAME.findall(expression))


def needed_lines(lines, outputs):
    """The lines that some output needs, in the same order."""
    raise NotImplementedError("write needed_lines")


def loop_of(lines, inputs, outputs):
    """The text of the C function ``loop``: a single loop that computes the outputs."""
    raise NotImplementedError("write loop_of")


def bytes_of(lines, inputs, outputs):
    """The bytes through memory for an element: line by line as NumPy, and in a single loop."""
    raise NotImplementedError("write bytes_of")


def gradient_lines():
    """Lines for z = tanh(x * w + b) and its gradients, from the inputs x, w, b and z@GRAD."""
    raise NotImplementedError("write gradient_lines")


if __name__ == "__main__":  # python net_in_c.py
    three = ["a = x * x", "b = x + w", "c = tanh(a) * w"]
    print("a and c are expected:", needed_lines(three, ["c"]))
    print(loop_of(three, ["x", "w"], ["c"]))
    print("(40, 24) is expected:", bytes_of(three, ["x", "w"], ["c"]))
    gradients = ["z", "x@GRAD", "w@GRAD", "b@GRAD"]
    print(loop_of(gradient_lines(), ["x", "w", "b", "z@GRAD"], gradients))
