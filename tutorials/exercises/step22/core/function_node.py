"""One use of an operation.

Step 22: FunctionNode gets gives_variables = False and the method kept, shown by the page;
get_retained_inputs and get_retained_outputs call kept.
"""
