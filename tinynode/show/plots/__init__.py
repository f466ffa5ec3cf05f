"""Plots of numbers: curves, bars, points, matrices, and pictures of arrays."""
