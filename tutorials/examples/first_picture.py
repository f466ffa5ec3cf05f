"""The first gradient: z = x * y + x, and what it takes to get back from z to x and y.

python -m tinynode step tutorials/examples/first_picture.py
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F

x = tn.Variable(np.array([1.0, 2.0, 3.0]), name="x")
y = tn.Variable(np.array([4.0, 5.0, 6.0]), name="y")

z = F.sum(x * y + x)
z.name = "z"
z.backward()

print("dz/dx = y + 1 =", x.grad)
print("dz/dy = x     =", y.grad)
print(tn.show.graph(z))
