from mynode.nn.optimizers import SGD, Adam, Optimizer
