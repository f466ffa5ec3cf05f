"""Exercise 7: break a circle."""

import weakref

from engine07 import Square


class Watched(Square):
    def apply(self, inputs):
        outputs = super().apply(inputs)
        self.output = weakref.ref(outputs[0])
        return outputs

    def last_output(self):
        return self.output()
