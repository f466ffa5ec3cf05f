"""Graphs and nets as pictures: boxes, arrows, their layout, and the formats."""
