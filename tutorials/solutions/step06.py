"""Exercise 6: a counter-example.

The list hands out last what was put in first. So the input on the right is followed first: put
the short way to the shared box there, and its creator runs too early.
"""

from engine06 import square


def naive_fails(x):
    a = square(x)
    return square(square(a)) + a


def naive_works(x):
    a = square(x)
    return a + square(square(a))
