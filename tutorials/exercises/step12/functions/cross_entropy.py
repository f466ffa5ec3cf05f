"""The loss of a classifier.

Step 12: SoftmaxCrossEntropy gets a second output, log_p, and retains it, with the labels.
"""
