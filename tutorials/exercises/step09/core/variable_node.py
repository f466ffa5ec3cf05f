"""What the graph holds of a Variable.

Step 9: VariableNode gets requires_grad and unchain.
"""
