"""The base class of layers and models.

Step 8: write the end of the method parameters; the rest of Module is given.
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
        found, seen, waiting = [], set(), [self]
        while waiting:
            value = waiting.pop(0)
            if id(value) in seen:
                continue
            seen.add(id(value))
            raise NotImplementedError("step 8: vars(value).values() has a module's attributes")
        return found

    def cleargrads(self):
        """Forget the gradients of all parameters."""
        for parameter in self.parameters():
            parameter.cleargrad()
