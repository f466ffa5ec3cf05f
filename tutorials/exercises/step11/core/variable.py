"""What a user holds: an array, its gradient, and where it came from.

Step 11: a Variable gets a node; creator_node and rank become properties that ask the node.
"""
