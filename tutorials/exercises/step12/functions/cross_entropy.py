"""The loss of a classifier.

Step 12: SoftmaxCrossEntropy retains the scores and the labels.
"""
