"""Nets as C: formulas, nests of loops, their text (emit), the compiler (build), and the calls."""
