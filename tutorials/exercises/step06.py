"""Exercise 6: a counter-example.

Each function takes a Variable x and returns a Variable y, computed from x with +, * and square.
naive_fails:  naive_backward(y) must give x a wrong gradient.
naive_works:  it must give the right one, although an *inner* box (not x) is used by two different
              operations.
Do not use the two graphs of the step, a + square(a) and square(a) + a, as they are: each graph
needs at least four operations.
"""

from engine06 import square


def naive_fails(x):
    return square(square(x))


def naive_works(x):
    return square(square(x))
