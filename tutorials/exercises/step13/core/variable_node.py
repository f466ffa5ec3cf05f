"""What the graph holds of a Variable.

Step 13: VariableNode gets requires_grad and unchain.
"""
