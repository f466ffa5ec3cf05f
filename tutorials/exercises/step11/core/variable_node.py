"""What the graph holds of a Variable.

Step 11: a node has a shape.
"""
