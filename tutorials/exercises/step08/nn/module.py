"""The base class of layers and models.

Step 8: write the method parameters; the rest of Module is given.
"""

from mynode.nn.parameter import Parameter


class Module:
    """A layer or a model. Its attributes hold parameters and further modules."""

    def forward(self, *inputs):
        """The outputs. A layer overrides forward."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *inputs):
        return self.forward(*inputs)

    def parameters(self):
        """All parameters in attributes, lists and tuples, each once, in order."""
        raise NotImplementedError("step 8: vars(self).values() has the attributes")

    def cleargrads(self):
        """Forget the gradients of all parameters."""
        for parameter in self.parameters():
            parameter.cleargrad()
