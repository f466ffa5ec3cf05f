"""The base class of layers and models."""

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
            if isinstance(value, Parameter):
                found.append(value)
            elif isinstance(value, Module):
                waiting = [*vars(value).values(), *waiting]
            elif isinstance(value, list | tuple):
                waiting = [*value, *waiting]
        return found

    def cleargrads(self):
        """Forget the gradients of all parameters."""
        for parameter in self.parameters():
            parameter.cleargrad()
