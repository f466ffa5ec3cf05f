"""Nets as C: source that a person can read, compiled by the system's compiler.

``formulas`` has the C expression of each operator, ``nests`` brings operators into loop nests,
``emit`` prints a nest, and ``build`` compiles and loads. ``calls`` calls the functions.
"""
