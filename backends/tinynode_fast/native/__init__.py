"""Nets as C: readable source, compiled by the compiler of the system.

``formulas`` has the C expression of each operator. ``nests`` brings operators into loop nests.
``emit`` prints a nest. ``build`` compiles and loads. ``calls`` calls the functions.
"""
