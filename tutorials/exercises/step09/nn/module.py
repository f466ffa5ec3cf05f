"""The base class of layers and models. Step 9: the page shows this file."""

from mynode.nn.parameter import Parameter


class Module:
    """A layer or a model. Its attributes hold parameters and further modules."""

    def forward(self, *inputs):
        """The outputs. A layer overrides forward."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *inputs):
        raise NotImplementedError("step 9: Module.__call__")

    def parameters(self):
        """All parameters in attributes, lists and tuples, each once, in order."""
        raise NotImplementedError("step 9: Module.parameters")

    def cleargrads(self):
        """Forget the gradients of all parameters."""
        raise NotImplementedError("step 9: Module.cleargrads")
